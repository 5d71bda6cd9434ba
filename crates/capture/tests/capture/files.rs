//! What programs do to files.

use crate::support::shell;
use pagetide_capture::Ended;

#[test]
fn reads_and_writes_are_told_with_their_place_and_length() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), vec![7; 10_000]).unwrap();
    let seen = shell(folder.path(), "dd if=in of=out bs=4096 2>/dev/null; rm in; mv out kept; exit 7");
    assert_eq!(seen.ended, Ended::Exited(7));
    println!("{}", seen.below(folder.path()));
    panic!("{:?} {:#?}", seen.trace.gaps, seen.trace.tasks);
}
