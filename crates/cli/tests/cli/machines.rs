//! Machines are what they are called, and what was assumed about them is said.

use crate::support::Scene;

/// The model beside a guest was `vm-2cpu`, which was the guest's machine at three sizes of memory.
#[test]
fn the_model_beside_a_guest_runs_on_the_machine_that_stands_for_it_and_says_so() {
    let scene = Scene::new();
    let compare = "compare hot-and-stream --on sim --on vm:6.12 --dry-run";
    let assumed = "assumed: machine guest-tcg for what is simulated, as it is compared with vm:6.12; \
                   `--machine` names another";
    let shown = scene.shown(compare);
    assert_eq!(shown.matches("machine = \"guest-tcg\"\nmem = \"512M\"").count(), 2, "{shown}");
    assert!(shown.ends_with(&format!("{assumed}\nexit 0")), "{shown}");

    let other_shape = scene.shown(&format!("{compare} --vm-cpus 4 --vm-nodes 2"));
    let shape = " (it has 2 CPUs and 1 node, the guest 4 and 2)";
    assert!(other_shape.ends_with(&format!("{assumed}{shape}\nexit 0")), "{other_shape}");

    let named = scene.shown(&format!("{compare} --machine vm-2cpu"));
    assert!(!named.contains("assumed"), "{named}");
    let (model, guest) = named.split_at(named.rfind("schema = 1").unwrap());
    assert!(model.contains("machine = \"vm-2cpu\"\nmem = \"512M\""), "{model}");
    assert!(guest.contains("machine = \"guest-tcg\"\nmem = \"512M\""), "{guest}");
}

#[test]
fn a_guest_of_a_kernel_that_nobody_measured_says_what_is_assumed() {
    let scene = Scene::new();
    let run = "run hot-and-stream --machine guest-tcg --mem 128M --param hot=1M --param stream=8M";
    let note =
        "note: assumed: linux-5.4 boots as a guest of linux-5.10 does; no guest of linux-5.4 was measured";
    let shown = scene.data(&format!("{run} --kernel linux-5.4"));
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(note), "{shown}");
    assert!(!scene.data(&format!("{run} --kernel linux-6.1")).contains("assumed"));
    assert!(
        !scene.data(&format!("{run} --kernel linux-5.4").replace("guest-tcg", "vm-2cpu")).contains("assumed")
    );
}
