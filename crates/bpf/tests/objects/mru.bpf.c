/* Most recently used: what crates/cache_ext/src/mru.rs does, as a program of eBPF. Made by `make.sh`. */
#include "cache_ext.h"

enum { PASSED_BY = 200, NODES_MAX = 4096 };

static u64 list;
static u64 left;

SEC("struct_ops.s/mru_init") int mru_init(void *ctx)
{
	list = bpf_cache_ext_ds_registry_new_list(ARG(struct mem_cgroup *, 0));
	return list ? 0 : -1;
}

static int from_head(int idx, struct cache_ext_list_node *node)
{
	if (!left)
		return STOP;
	if (idx < PASSED_BY || is_busy(node->folio))
		return GO_ON;
	left--;
	return EVICT;
}

SEC("struct_ops/mru_evict_folios") void mru_evict_folios(void *ctx)
{
	struct cache_ext_eviction_ctx *eviction = ARG(struct cache_ext_eviction_ctx *, 0);

	left = eviction->request_nr_folios_to_evict;
	bpf_cache_ext_list_iterate(ARG(struct mem_cgroup *, 1), list, from_head, eviction);
}

SEC("struct_ops/mru_folio_added") void mru_folio_added(void *ctx)
{
	bpf_cache_ext_list_add(list, ARG(struct folio *, 0));
}

SEC("struct_ops/mru_folio_accessed") void mru_folio_accessed(void *ctx)
{
	bpf_cache_ext_list_move(list, ARG(struct folio *, 0), 0);
}

SEC(".struct_ops.link")
struct cache_ext_ops mru_ops = {
	.init = (void *)mru_init,
	.evict_folios = (void *)mru_evict_folios,
	.folio_added = (void *)mru_folio_added,
	.folio_accessed = (void *)mru_folio_accessed,
};
