//! What programs do to files.



use crate::support::shell;
use pagetide_capture::Ended;

#[test]
fn reads_and_writes_are_told_with_their_place_and_length() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), vec![7; 10_000]).unwrap();
    let seen = shell(folder.path(), "dd if=in of=out bs=4096 2>/dev/null; rm in; mv out kept; exit 7");
    assert_eq!(seen.ended, Ended::Exited(7));
    // The last write of dd goes where the read before it came from.
    assert_eq!(
        seen.below(folder.path()),
        "\
dd: open in 0+0 1
dd: close in 0+0 0
dd: open out 0+0 6
dd: close out 0+0 0
dd: read in 0+4096 0
dd: write out 0+4096 0
dd: read in 4096+4096 0
dd: write out 4096+4096 0
dd: read in 8192+1808 0
dd: write out 8192+1808 0
dd: read in 10000+0 0
dd: close in 0+0 0
dd: close out 0+0 0
rm: unlink in 0+0 0
mv: rename out 0+0 4294967295
"
    );
}
