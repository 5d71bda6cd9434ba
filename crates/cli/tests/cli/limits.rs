//! `compare --fail-if`: what crosses a limit, what does not, and what cannot be told; and comparisons that go on
//! where they were stopped.

use crate::support::Scene;

/// A run of a fraction of a second; the kernels keep different parts of the hot set.
const SMALL: &str = "hot-and-stream --param hot=4M --param stream=128M --mem 64M";

/// What a person sees of `pagetide` with `arguments` and limits, which have blanks.
fn shown(scene: &Scene, arguments: &str, limits: &[&str]) -> String {
    let mut command = scene.command(arguments);
    limits.iter().for_each(|limit| {
        command.args(["--fail-if", limit]);
    });
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().unwrap();
    format!("{}{}exit {code}", text(&output.stdout), text(&output.stderr))
}

/// From the heading of the limits to the next empty line, and what follows the report.
fn limits_and_end(shown: &str) -> String {
    let limits = shown.split_once("\nlimits\n").map_or("", |(_, rest)| rest);
    let table = limits.split("\n\n").next().unwrap_or_default();
    let tail: Vec<&str> =
        shown.lines().skip_while(|line| !line.starts_with("error") && !line.starts_with("exit")).collect();
    format!("{table}\n{}", tail.join("\n"))
}

#[test]
fn a_limit_that_is_not_kept_is_exit_code_5_and_says_which() {
    let scene = Scene::new();
    scene.data(&format!("compare {SMALL} --out kept"));
    let told = shown(
        &scene,
        "compare kept",
        &[
            "hot_pages_cached > +5%",
            "hot_pages_cached worse",
            "futile_wait_seconds > 1s",
            "pgscan_kswapd < 1",
        ],
    );
    insta::assert_snapshot!(limits_and_end(&told), @"
     limit                  run                   baseline  value  change   limit is
     hot_pages_cached >     linux-5.4+root-aging       839   1024  +22.1 %  crossed
     +5%
     hot_pages_cached       linux-5.4+root-aging       839   1024  +22.1 %  kept
     worse
     futile_wait_seconds >  linux-5.4+root-aging         0      0  0        kept
     1s
     pgscan_kswapd < 1      linux-5.4+root-aging     15491  15443  -0.3 %   kept
    error: 1 of 4 limits is not kept: `hot_pages_cached > +5%`, linux-5.4+root-aging: 839 -> 1024 (+22.1 %)
    exit 5
    ");
    let kept = shown(&scene, "compare kept", &["hot_pages_cached worse by 5%"]);
    assert!(kept.ends_with("exit 0"), "{kept}");
}

#[test]
fn runs_are_judged_like_folders_in_every_format() {
    let scene = Scene::new();
    let limit = ["hot_pages_cached > +5%"];
    for (format, wanted) in [
        ("json", "\"outcome\": \"crossed\""),
        ("csv", ",limit,hot_pages_cached > +5%,outcome,crossed"),
        ("md", "| hot_pages_cached > +5% |"),
    ] {
        let told = shown(&scene, &format!("compare {SMALL} --format {format} -q"), &limit);
        assert!(told.contains(wanted) && told.ends_with("exit 5"), "{format}: {told}");
    }
    let mmtests = shown(&scene, &format!("compare {SMALL} --style mmtests -q"), &limit);
    assert!(mmtests.contains("error: 1 of 1 limits is not kept") && mmtests.ends_with("exit 5"), "{mmtests}");
}

/// As JUnit's XML, which CI systems show beside tests.
#[test]
fn limits_are_tests_of_a_suite() {
    let scene = Scene::new();
    let limits = ["hot_pages_cached > +5%", "pgscan_kswapd < 1"];
    let told = shown(&scene, &format!("compare {SMALL} -q --junit limits.xml"), &limits);
    assert!(told.ends_with("exit 5"), "{told}");
    insta::assert_snapshot!(std::fs::read_to_string(scene.path().join("limits.xml")).unwrap(), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuite name="pagetide hot-and-stream" tests="2" failures="1">
      <testcase classname="hot-and-stream.linux-5.4+root-aging" name="hot_pages_cached &gt; +5%"><failure message="limit is crossed">`hot_pages_cached &gt; +5%`, linux-5.4+root-aging: 839 -&gt; 1024 (+22.1 %)</failure></testcase>
      <testcase classname="hot-and-stream.linux-5.4+root-aging" name="pgscan_kswapd &lt; 1"><system-out>kept: `pgscan_kswapd &lt; 1`, linux-5.4+root-aging: 15491 -&gt; 15443 (-0.3 %)</system-out></testcase>
    </testsuite>
    "#);
    let again = shown(&scene, &format!("compare {SMALL} -q --junit limits.xml"), &limits);
    assert!(again.ends_with("exit 1"), "what is there stays: {again}");
}

/// As SARIF, which GitHub shows as alerts: what is kept is none.
#[test]
fn limits_that_are_not_kept_are_results_of_sarif() {
    let scene = Scene::new();
    let limits = ["hot_pages_cached > +5%", "pgscan_kswapd < 1"];
    let told = shown(&scene, &format!("compare {SMALL} -q --sarif limits.sarif"), &limits);
    assert!(told.ends_with("exit 5"), "{told}");
    let text = std::fs::read_to_string(scene.path().join("limits.sarif")).unwrap();
    let sarif: serde_json::Value = serde_json::from_str(&text).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(
        (&sarif["version"], run["tool"]["driver"]["rules"].as_array().unwrap().len()),
        (&"2.1.0".into(), 2)
    );
    assert_eq!(run["results"].as_array().unwrap().len(), 1);
    insta::assert_snapshot!(format!("{:#}", run["results"][0]), @r#"
    {
      "level": "error",
      "locations": [
        {
          "logicalLocations": [
            {
              "name": "linux-5.4+root-aging"
            }
          ],
          "physicalLocation": {
            "artifactLocation": {
              "uri": "hot-and-stream"
            },
            "region": {
              "startLine": 1
            }
          }
        }
      ],
      "message": {
        "text": "crossed: `hot_pages_cached > +5%`, linux-5.4+root-aging: 839 -> 1024 (+22.1 %)"
      },
      "partialFingerprints": {
        "primaryLocationLineHash": "hot-and-stream/linux-5.4+root-aging/hot_pages_cached > +5%"
      },
      "ruleId": "hot_pages_cached > +5%",
      "ruleIndex": 0
    }
    "#);
    let again = shown(&scene, &format!("compare {SMALL} -q --sarif limits.sarif"), &limits);
    assert!(again.ends_with("exit 1"), "what is there stays: {again}");
}

#[test]
fn what_is_no_limit_is_refused_before_anything_runs_and_unknown_names_after_it() {
    let scene = Scene::new();
    let all = [
        shown(&scene, &format!("compare {SMALL}"), &["hot_pages_cached"]),
        shown(&scene, &format!("compare {SMALL}"), &["hot_pages_cached < -5"]),
        shown(&scene, &format!("compare {SMALL}"), &["hot_pages_cached < 5 pages"]),
    ];
    insta::assert_snapshot!(all.join("\n\n"), @"
    error: `--fail-if 'hot_pages_cached'`: there is no condition in it
    hint: write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number itself, `METRIC change > 100`, or `METRIC worse by 5%`
    exit 1

    error: `--fail-if 'hot_pages_cached < -5'`: `-5` has a sign, so it is no value of a metric
    hint: write `hot_pages_cached change < -5` for the change, or `hot_pages_cached < 5` for the number itself
    exit 1

    error: `--fail-if 'hot_pages_cached < 5 pages'`: unknown unit `pages`
    hint: known names: `ns`, `us`, `µs`, `ms`, `s`, `min`, `B`, `kB`, `KiB`, `MiB`, `GiB`, `%`
    exit 1
    ");
    let unknown = shown(&scene, &format!("compare {SMALL} -q"), &["hot_pages_cahced < -5%"]);
    assert!(unknown.starts_with("hot_pages_cached: "), "the results come first: {unknown}");
    insta::assert_snapshot!(limits_and_end(&unknown), @"
    error: `--fail-if 'hot_pages_cahced < -5%'`: no run has a metric, samples or a counter `hot_pages_cahced`
    hint: did you mean `hot_pages_cached`?
    exit 1
    ");
}

#[test]
fn a_comparison_goes_on_with_what_has_not_finished() {
    let scene = Scene::new();
    let arguments = format!("compare {SMALL} --seeds 2 -q --format csv --out");
    let whole = scene.data(&format!("{arguments} whole"));
    scene.data(&format!("{arguments} again"));
    let names = |folder: &str| -> Vec<String> {
        let names = scene.names().into_iter().filter(|name| name.matches('/').count() == 1);
        names.filter_map(|name| name.strip_prefix(&format!("{folder}/")).map(str::to_owned)).collect()
    };
    assert_eq!(names("again").len(), 5, "four runs and the plan: {:?}", names("again"));
    let killed = scene.path().join("again").join(&names("again")[1]);
    let left = killed.with_file_name(format!("{}.partial", names("again")[1]));
    std::fs::rename(&killed, &left).unwrap();
    std::fs::remove_file(left.join("MANIFEST")).unwrap();
    std::fs::create_dir(left.join("series")).unwrap();
    let kept = scene.path().join("again").join(&names("again")[0]).join("MANIFEST");
    let before = std::fs::metadata(&kept).unwrap().modified().unwrap();
    assert_eq!(scene.data(&format!("{arguments} again --resume")), whole);
    assert_eq!(
        std::fs::metadata(&kept).unwrap().modified().unwrap(),
        before,
        "what is there is not run again"
    );
    assert_eq!(names("again"), names("whole"));
    let told = scene.shown(&format!("compare {SMALL} --seeds 2 --out again --resume"));
    assert!(told.contains("4 runs; 4 have finished before"), "{told}");
}

#[test]
fn another_comparison_does_not_go_on_there() {
    let scene = Scene::new();
    scene.data(&format!("compare {SMALL} -q --out kept"));
    scene.data(&format!("run {SMALL} -q --out run"));
    let commands = [
        format!("compare {SMALL} --out kept"),
        format!("compare {SMALL} --out kept --resume --seeds 2"),
        format!("compare {SMALL} --out run --resume"),
        format!("compare {SMALL} --resume"),
        "compare kept --resume --out other".to_owned(),
    ];
    let shown: Vec<String> =
        commands.iter().map(|command| format!("$ {command}\n{}\n", scene.shown(command))).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    $ compare hot-and-stream --param hot=4M --param stream=128M --mem 64M --out kept
    error: `kept` has a comparison already
    hint: add `--resume` to go on with it, or name a new folder
    exit 1

    $ compare hot-and-stream --param hot=4M --param stream=128M --mem 64M --out kept --resume --seeds 2
    error: `kept` has a comparison of another plan: seeds: `1` there, `2` here; runs: `2` there, `4` here
    hint: give the options that it was begun with, or name a new folder
    exit 1

    $ compare hot-and-stream --param hot=4M --param stream=128M --mem 64M --out run --resume
    error: `run` is no folder of a comparison
    hint: leave `--resume` out and name a new folder
    exit 1

    $ compare hot-and-stream --param hot=4M --param stream=128M --mem 64M --resume
    error: the following required arguments were not provided:
      --out <DIR>

    Usage: pagetide compare --out <DIR> --param <NAME=VALUE> --mem <SIZE> --resume <WORKLOAD|FILE|DIR>...

    For more information, try '--help'.
    exit 2

    $ compare kept --resume --out other
    error: `--out` is for runs; it changes nothing about recordings
    exit 2
    ");
}

/// The example in `docs/ci.md` names options that there are, and limits that can be read.
#[test]
fn the_example_for_ci_is_a_command_that_runs() {
    let scene = Scene::new();
    let document = include_str!("../../../../docs/ci.md");
    let script =
        document.split_once("        run: |\n").unwrap().1.split_once("      - if: always()").unwrap().0;
    let command = script.split_once("pagetide compare ").unwrap().1.split_once(" | tee").unwrap().0;
    let command = command.replace("\\\n", " ").replace("$resume", "");
    let (arguments, limits) = command.split_once("--fail-if").unwrap();
    let limits: Vec<&str> = limits.split('\'').skip(1).step_by(2).collect();
    assert_eq!(limits.len(), 2, "{limits:?}");
    let arguments = arguments.replace("--seeds 5", "--param hot=1M --param stream=64M --mem 32M --seeds 2");
    let told = shown(&scene, &format!("compare {arguments} -q"), &limits);
    assert!(told.contains("| limit | run |") && told.ends_with("exit 0"), "{told}");
    let plan = scene.path().join("recordings/memory/comparison.txt");
    assert!(plan.is_file(), "what the script looks for before it resumes");
    let resumed = shown(&scene, &format!("compare {arguments} -q --resume"), &limits);
    assert_eq!(resumed, told);
}
