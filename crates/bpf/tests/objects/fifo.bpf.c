/* First in, first out: what crates/cache_ext/src/fifo.rs does, as a program of eBPF. Made by `make.sh`. */
#include "cache_ext.h"

enum { LOOKS_MAX = 512 };

static u64 list;
static u64 left;

SEC("struct_ops.s/fifo_init") int fifo_init(void *ctx)
{
	list = bpf_cache_ext_ds_registry_new_list(ARG(struct mem_cgroup *, 0));
	return list ? 0 : -1;
}

static int in_order(int idx, struct cache_ext_list_node *node)
{
	if (idx == LOOKS_MAX || !left)
		return STOP;
	if (is_busy(node->folio))
		return GO_ON;
	left--;
	return EVICT;
}

SEC("struct_ops/fifo_evict_folios") void fifo_evict_folios(void *ctx)
{
	struct cache_ext_eviction_ctx *eviction = ARG(struct cache_ext_eviction_ctx *, 0);
	struct cache_ext_iterate_opts to_tail = { .continue_mode = TAIL, .evict_mode = TAIL };

	left = eviction->request_nr_folios_to_evict;
	bpf_cache_ext_list_iterate_extended(ARG(struct mem_cgroup *, 1), list, in_order, &to_tail, eviction);
}

SEC("struct_ops/fifo_folio_added") void fifo_folio_added(void *ctx)
{
	bpf_cache_ext_list_add_tail(list, ARG(struct folio *, 0));
}

SEC(".struct_ops.link")
struct cache_ext_ops fifo_ops = {
	.init = (void *)fifo_init,
	.evict_folios = (void *)fifo_evict_folios,
	.folio_added = (void *)fifo_folio_added,
};
