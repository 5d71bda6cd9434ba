//! The rules of the lists of dentries and inodes, one by one.

use super::*;
use crate::base::frame::PageFlags;

/// Before and since inodes with pages are kept off their list (5.16).
const OLD: &str = "linux-5.5";
const NEW: &str = "linux-6.1";
const BOTH: [&str; 2] = [OLD, NEW];

#[test]
fn a_dentry_goes_before_its_inode_the_oldest_first() {
    for kernel in BOTH {
        let mut scene = Scene::boot(kernel);
        scene.files(ROOT, 3);
        assert_eq!((scene.draw().as_str(), scene.listed(ROOT)), ("ddd", (3, 0)), "the inode is pinned");
        assert_eq!(scene.prune_inodes(9), (0, 0));
        assert_eq!(scene.prune_dentries(2), 2);
        assert_eq!((scene.draw().as_str(), scene.listed(ROOT)), ("iid", (1, 2)));
        assert_eq!(scene.prune_inodes(1), (1, 0));
        assert_eq!((scene.draw().as_str(), scene.listed(ROOT)), (".id", (1, 1)));
        scene.check();
    }
}

#[test]
fn an_open_file_leaves_the_list_when_it_is_met_and_comes_back_when_it_is_closed() {
    let mut scene = Scene::boot(NEW);
    scene.files(ROOT, 2);
    scene.reopen(0, ROOT);
    assert_eq!((scene.draw().as_str(), scene.listed(ROOT)), ("Od", (2, 0)), "it leaves lazily");
    assert_eq!(scene.prune_dentries(1), 0);
    assert_eq!((scene.draw().as_str(), scene.listed(ROOT)), ("Od", (1, 0)));
    scene.close(0);
    assert_eq!(scene.prune_dentries(1), 1);
    assert_eq!(scene.draw(), "di", "the file that was closed last is the youngest");
    scene.check();
}

#[test]
fn a_file_that_was_opened_twice_survives_one_look() {
    let mut scene = Scene::boot(NEW);
    scene.files(ROOT, 2);
    scene.reopen(0, ROOT);
    scene.close(0);
    assert_eq!((scene.prune_dentries(1), scene.draw().as_str()), (0, "dd"), "referenced: to the other end");
    assert_eq!((scene.prune_dentries(1), scene.draw().as_str()), (1, "di"));
    assert_eq!((scene.prune_dentries(1), scene.draw().as_str()), (1, "ii"));
}

#[test]
fn a_file_stays_open_until_its_last_user_closes_it() {
    let mut scene = Scene::boot(NEW);
    scene.files(ROOT, 1);
    scene.reopen(0, ROOT);
    scene.reopen(0, ROOT);
    let _ = scene.prune_dentries(1);
    scene.close(0);
    assert_eq!(scene.listed(ROOT), (0, 0), "one user is left");
    scene.close(0);
    assert_eq!(scene.listed(ROOT), (1, 0));
}

#[test]
fn an_inode_whose_dentry_came_back_and_went_survives_one_look() {
    for kernel in BOTH {
        let mut scene = Scene::boot(kernel);
        scene.files(ROOT, 2);
        assert_eq!(scene.prune_dentries(2), 2);
        scene.reopen(0, ROOT);
        scene.close(0);
        assert_eq!((scene.draw().as_str(), scene.listed(ROOT)), ("di", (1, 2)), "it leaves its list lazily");
        assert_eq!(scene.prune_dentries(1), 1);
        assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((0, 0), "ii"), "referenced: rotated");
        assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((1, 0), "i."));
        assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((1, 0), ".."));
        scene.check();
    }
}

#[test]
fn an_inode_with_a_dentry_leaves_the_list_when_it_is_met() {
    let mut scene = Scene::boot(OLD);
    scene.files(ROOT, 1);
    let _ = scene.prune_dentries(1);
    scene.reopen(0, ROOT);
    assert_eq!((scene.prune_inodes(1), scene.listed(ROOT)), ((0, 0), (0, 0)));
    assert_eq!(scene.draw(), "O");
}

#[test]
fn an_inode_to_be_written_is_off_the_list_until_it_is_clean() {
    for kernel in BOTH {
        let mut scene = Scene::boot(kernel);
        scene.files(ROOT, 2);
        scene.set_inode_dirty(0, true);
        assert_eq!(scene.prune_dentries(2), 2);
        assert_eq!(scene.listed(ROOT), (0, 1), "the first one is dirty");
        scene.set_inode_dirty(1, true);
        assert_eq!((scene.prune_inodes(1), scene.listed(ROOT)), ((0, 0), (0, 0)), "taken off when it is met");
        scene.set_inode_dirty(1, false);
        scene.set_inode_dirty(0, false);
        assert_eq!(scene.listed(ROOT), (0, 2));
        assert_eq!(
            (scene.prune_inodes(1), scene.draw().as_str()),
            ((1, 0), "i."),
            "first clean, first to go"
        );
        scene.check();
    }
}

#[test]
fn up_to_5_15_an_inode_takes_its_pages_along() {
    let mut scene = Scene::boot(OLD);
    scene.files(ROOT, 1);
    for index in 0..3 {
        scene.page(0, index, ROOT);
    }
    let _ = scene.prune_dentries(1);
    assert_eq!(scene.listed(ROOT), (0, 1));
    // The first look takes the pages, the second the inode.
    assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((0, 3), "i"));
    assert_eq!((scene.pages_of(0), scene.event(VmEvent::KswapdInodeSteal)), (0, 3));
    assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((1, 0), "."));
    assert_eq!(scene.event(VmEvent::PgInodeSteal), 0);
    scene.check();
}

#[test]
fn up_to_5_15_an_inode_with_pages_in_use_goes_to_the_other_end() {
    let mut scene = Scene::boot(OLD);
    scene.files(ROOT, 2);
    let locked = scene.page(0, 0, ROOT);
    scene.page(0, 1, ROOT);
    scene.core.alloc.frames.set_flags(locked, PageFlags::LOCKED);
    let _ = scene.prune_dentries(2);
    assert_eq!((scene.prune_inodes(1), scene.pages_of(0)), ((0, 1), 1), "the page that is being read stays");
    assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((1, 0), "i."), "the other file's turn");
    scene.core.alloc.frames.clear_flags(locked, PageFlags::LOCKED);
    assert_eq!(scene.prune_inodes(2), (1, 1));
    scene.check();
}

#[test]
fn up_to_5_15_an_inode_with_dirty_pages_is_in_use() {
    let mut scene = Scene::boot(OLD);
    scene.files(ROOT, 1);
    let pfn = scene.page(0, 0, ROOT);
    let _ = scene.prune_dentries(1);
    assert!(scene.cache.set_dirty(&mut scene.core, pfn));
    assert_eq!((scene.prune_inodes(1), scene.listed(ROOT)), ((0, 0), (0, 0)));
    assert_eq!(scene.pages_of(0), 1);
}

#[test]
fn from_5_16_on_an_inode_with_pages_waits_off_the_list() {
    let mut scene = Scene::boot(NEW);
    scene.files(ROOT, 2);
    let page = scene.page(0, 0, ROOT);
    let _ = scene.prune_dentries(2);
    assert_eq!(scene.listed(ROOT), (0, 1), "only the one without a page");
    scene.evict(page);
    scene.fs.list_emptied(&scene.core, &mut scene.cache);
    assert_eq!(scene.listed(ROOT), (0, 2), "at the moment at which its last page went");
    assert_eq!(scene.prune_inodes(1), (1, 0));
    // A lone shadow counts as a page, and costs a look of its own.
    assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((0, 1), "i."));
    assert_eq!((scene.prune_inodes(1), scene.draw().as_str()), ((1, 0), ".."));
    assert_eq!(scene.event(VmEvent::KswapdInodeSteal), 1);
    scene.check();
}

#[test]
fn from_5_16_on_an_inode_waits_for_its_last_node_of_shadows_too() {
    let mut scene = Scene::boot(NEW);
    scene.files(ROOT, 1);
    scene.shadow_leaves(0, 3, ROOT);
    scene.fs.list_emptied(&scene.core, &mut scene.cache);
    let _ = scene.prune_dentries(1);
    assert_eq!((scene.listed(ROOT), scene.cache.trees().shadow_leaves()), ((0, 0), 3));
    let mut sc = kswapd(0);
    // Of three leaves the shrinker asks for half at a time, and for a batch or all of them.
    let mut visits = 0;
    while scene.cache.trees().shadow_leaves() > 0 {
        let _ = scene.visit(Shrinker::ShadowNodes, ROOT, &mut sc);
        visits += 1;
        assert!(visits < 9, "the shrinker goes on");
    }
    assert_eq!(scene.listed(ROOT), (0, 1));
    assert_eq!(scene.event(VmEvent::WorkingsetNodeReclaim), 3);
}
