/* A policy for tests: does one thing, well or badly, by the number that is set as `what`. Made by `make.sh`. */
#include "cache_ext.h"

/* Well. */
enum { COUNTS = 0, SAMPLES = 1, GOES_ROUND = 2, FIVE_LISTS = 3, OLDEST_GOES = 4, ANSWERS = 5 };
/* Badly. */
enum { RUNS_ON = 10, FROM_NOWHERE = 11, TO_CONSTANT = 12, DEADLOCKS = 13, LOOKS_AROUND = 14, ASKS_TIME = 15,
       ASKS_TASK = 16, FAILS = 17, TOO_DEEP = 18, INVENTS = 19 };

const volatile u32 what = 0;
u64 list;
u64 answers;

struct {
	__uint(type, 1); /* BPF_MAP_TYPE_HASH */
	__type(key, u64);
	__type(value, u64);
	__uint(max_entries, 100000);
} accesses SEC(".maps");

struct {
	__uint(type, 9); /* BPF_MAP_TYPE_LRU_HASH */
	__type(key, u64);
	__type(value, u8);
	__uint(max_entries, 4);
} recent SEC(".maps");

struct {
	__uint(type, 27); /* BPF_MAP_TYPE_RINGBUF */
	__uint(max_entries, 4096);
} events SEC(".maps");

static __attribute__((noinline)) u64 deeper(u64 n)
{
	return n ? deeper(n - 1) * 3 + n : what;
}

SEC("struct_ops.s/trial_init") int trial_init(void *ctx)
{
	struct mem_cgroup *memcg = ARG(struct mem_cgroup *, 0);

	list = bpf_cache_ext_ds_registry_new_list(memcg);
	if (what == FIVE_LISTS) {
		for (int i = 1; i < 5; i++)
			if (!bpf_cache_ext_ds_registry_new_list(memcg))
				return -2;
		return bpf_cache_ext_ds_registry_new_list(memcg) ? -3 : 0;
	}
	return what == FAILS ? -12 : 0;
}

SEC("syscall") int answer(void *ctx)
{
	answers++;
	return 0;
}

/* The fifth key drops the one that was used least recently, which is the second. */
static __attribute__((noinline)) bool oldest_goes(void)
{
	u8 value = 7;

	for (u64 key = 0; key < 4; key++)
		bpf_map_update_elem(&recent, &key, &value, 0);
	u64 first = 0, second = 1, fifth = 4;
	bpf_map_lookup_elem(&recent, &first);
	bpf_map_update_elem(&recent, &fifth, &value, 0);
	return bpf_map_lookup_elem(&recent, &first) && !bpf_map_lookup_elem(&recent, &second) &&
	       bpf_map_delete_elem(&recent, &second) == -2 && bpf_map_update_elem(&recent, &second, &value, 2) == -2;
}

SEC("struct_ops/trial_folio_added") void trial_folio_added(void *ctx)
{
	struct folio *folio = ARG(struct folio *, 0);
	u64 key = (u64)folio, one = 1;

	switch (what) {
	case RUNS_ON:
		for (;;)
			list++;
	case FROM_NOWHERE:
		list = *(volatile u64 *)(u64)(bpf_get_prandom_u32() & 0xfffff8);
		break;
	case TO_CONSTANT:
		*(volatile u32 *)&what = 1;
		break;
	case LOOKS_AROUND:
		list = (u64)folio->private;
		break;
	case ASKS_TIME:
		list = bpf_ktime_get_ns();
		break;
	case ASKS_TASK:
		list = bpf_get_current_pid_tgid();
		break;
	case TOO_DEEP:
		list = deeper(9);
		break;
	case OLDEST_GOES:
		if (!oldest_goes())
			list = *(volatile u64 *)0;
		break;
	case ANSWERS:
		if (folio->index != answers || folio->mapping->host->i_ino == 0)
			list = *(volatile u64 *)8;
		bpf_ringbuf_output(&events, &one, sizeof(one), 0);
		break;
	}
	bpf_map_update_elem(&accesses, &key, &one, 0);
	bpf_cache_ext_list_add_tail(list, folio);
}

SEC("struct_ops/trial_folio_accessed") void trial_folio_accessed(void *ctx)
{
	u64 key = ARG(u64, 0);
	u64 *count = bpf_map_lookup_elem(&accesses, &key);

	if (count)
		__sync_fetch_and_add(count, 1);
}

SEC("struct_ops/trial_folio_evicted") void trial_folio_evicted(void *ctx)
{
	u64 key = ARG(u64, 0);

	bpf_map_delete_elem(&accesses, &key);
}

static s64 score(struct cache_ext_list_node *node)
{
	u64 key = (u64)node->folio;
	u64 *count = bpf_map_lookup_elem(&accesses, &key);

	return count && !is_busy(node->folio) ? (s64)*count : 0x7fffffffffffffffll;
}

static int those_read_once(int idx, struct cache_ext_list_node *node)
{
	u64 key = (u64)node->folio;
	u64 *count = bpf_map_lookup_elem(&accesses, &key);

	if (what == DEADLOCKS)
		bpf_cache_ext_list_del(node->folio);
	/* Whoever comes round again has one access less. */
	if (count && what == GOES_ROUND)
		return (*count)-- > 1 ? GO_ON : EVICT;
	return count && *count > 2 ? GO_ON : EVICT;
}

SEC("struct_ops/trial_evict_folios") void trial_evict_folios(void *ctx)
{
	struct cache_ext_eviction_ctx *eviction = ARG(struct cache_ext_eviction_ctx *, 0);
	struct mem_cgroup *memcg = ARG(struct mem_cgroup *, 1);
	struct sampling_options options = { .sample_size = 4 };
	struct cache_ext_iterate_opts to_tail = { .continue_mode = TAIL, .evict_mode = TAIL };

	if (what == INVENTS) {
		eviction->folios_to_evict[0] = (struct folio *)0x1234;
		eviction->nr_folios_to_evict = 1;
	} else if (what == SAMPLES) {
		bpf_cache_ext_list_sample(memcg, list, score, &options, eviction);
	} else if (what == GOES_ROUND) {
		bpf_cache_ext_list_iterate_extended(memcg, list, those_read_once, &to_tail, eviction);
	} else {
		bpf_cache_ext_list_iterate(memcg, list, those_read_once, eviction);
	}
}

SEC(".struct_ops.link")
struct cache_ext_ops trial_ops = {
	.init = (void *)trial_init,
	.evict_folios = (void *)trial_evict_folios,
	.folio_added = (void *)trial_folio_added,
	.folio_accessed = (void *)trial_folio_accessed,
	.folio_evicted = (void *)trial_folio_evicted,
};
