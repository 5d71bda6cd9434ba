/* What the policies beside this file use of a kernel with cache_ext: our own declarations, and no more than they need.
 * Where the fields lie does not matter: whoever loads an object moves them to where the kernel has them. */
#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct inode {
	unsigned long i_ino;
};
struct address_space {
	struct inode *host;
};
struct folio {
	unsigned long flags;
	struct address_space *mapping;
	unsigned long index;
	void *private;
};
struct list_head {
	struct list_head *next, *prev;
};
struct cache_ext_list_node {
	struct folio *folio;
	struct list_head node;
};
struct cache_ext_eviction_ctx {
	unsigned long request_nr_folios_to_evict;
	unsigned long nr_folios_to_evict;
	struct folio *folios_to_evict[32];
	s64 scores[32];
};
struct cache_ext_admission_ctx {
	u64 ino;
	u64 offset;
	u64 size;
};
struct sampling_options {
	u32 sample_size;
	u32 select_size;
};
struct cache_ext_iterate_opts {
	u64 continue_list;
	u64 continue_mode;
	u64 evict_list;
	u64 evict_mode;
	u64 nr_folios_continue;
	u64 nr_folios_evict;
};
struct mem_cgroup;
struct cache_ext_ops {
	s32 (*init)(struct mem_cgroup *memcg);
	void (*evict_folios)(struct cache_ext_eviction_ctx *ctx, struct mem_cgroup *memcg);
	void (*folio_added)(struct folio *folio);
	void (*folio_accessed)(struct folio *folio);
	void (*folio_evicted)(struct folio *folio);
	bool (*admit_folio)(struct cache_ext_admission_ctx *ctx);
};
#pragma clang attribute pop

enum { GO_ON, STOP, EVICT };
enum { SKIP, HEAD, TAIL };
/* Bits of a folio's flags in Linux 6.6. */
enum { UPTODATE = 1 << 2, DIRTY = 1 << 3, LRU = 1 << 4, WRITEBACK = 1 << 15 };

int bpf_cache_ext_list_add(u64 list, struct folio *folio) __ksym;
int bpf_cache_ext_list_add_tail(u64 list, struct folio *folio) __ksym;
int bpf_cache_ext_list_del(struct folio *folio) __ksym;
int bpf_cache_ext_list_move(u64 list, struct folio *folio, bool tail) __ksym;
int bpf_cache_ext_list_iterate(struct mem_cgroup *memcg, u64 list, int(step)(int idx, struct cache_ext_list_node *node),
			       struct cache_ext_eviction_ctx *ctx) __ksym;
int bpf_cache_ext_list_iterate_extended(struct mem_cgroup *memcg, u64 list,
					int(step)(int idx, struct cache_ext_list_node *node),
					struct cache_ext_iterate_opts *opts, struct cache_ext_eviction_ctx *ctx) __ksym;
int bpf_cache_ext_list_sample(struct mem_cgroup *memcg, u64 list, s64(score)(struct cache_ext_list_node *node),
			      struct sampling_options *opts, struct cache_ext_eviction_ctx *ctx) __ksym;
u64 bpf_cache_ext_ds_registry_new_list(struct mem_cgroup *memcg) __ksym;

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

/* Arguments of a hook come as an array of numbers. */
#define ARG(type, n) ((type)((u64 *)ctx)[n])

static __inline bool is_busy(struct folio *folio)
{
	unsigned long flags = folio->flags;
	return (flags & (DIRTY | WRITEBACK)) || (flags & (UPTODATE | LRU)) != (UPTODATE | LRU);
}
