//! The playground says what the command line says: the same bytes of result, the same words of error.
//!
//! Left out: the page around it, which `cargo xtask test full` drives in a browser.

use playground::{Asked, Playground};
use serde_json::{Value, json};

use crate::support::Scene;

/// The same choices as options: a run of a fraction of a second, with reclaim.
const OPTIONS: &str = "compare hot-and-stream --kernel linux-5.4 --kernel linux-5.4+root-aging --mem 32M \
                       --param hot=1M --param stream=64M --set vm.swappiness=10 --seeds 2";

fn chosen() -> Value {
    json!({
        "workload": "hot-and-stream",
        "kernels": ["linux-5.4", "linux-5.4+root-aging"],
        "mem": "32M",
        "params": ["hot=1M", "stream=64M"],
        "sysctls": ["vm.swappiness=10"],
        "seeds": 2,
    })
}

/// Asks and reads JSON.
fn ask(playground: &mut Playground, question: &Value) -> Result<Value, Value> {
    let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).expect("answers are JSON");
    playground.ask(&question.to_string()).map(read).map_err(read)
}

/// A playground that has run what is asked.
fn ran(mut asked: Value) -> Playground {
    let mut playground = Playground::default();
    asked["ask"] = "begin".into();
    ask(&mut playground, &asked).expect("it can be planned");
    while ask(&mut playground, &json!({ "ask": "step" })).expect("it runs")["over"] != true {}
    playground
}

fn shown(playground: &mut Playground, format: &str) -> String {
    let shown = playground.ask(&json!({ "ask": "shown", "format": format }).to_string());
    String::from_utf8(shown.expect("it has run")).unwrap()
}

/// Two runs of one scenario differ in the time that they took on a clock.
fn without_clock(json: &str) -> String {
    let lines = json.lines().filter(|line| !line.trim_start().starts_with("\"wall_seconds\""));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_playground_shows_the_same_bytes_as_the_command_line() {
    let scene = Scene::new();
    let mut playground = ran(chosen());
    assert_eq!(shown(&mut playground, "text"), scene.data(OPTIONS));
    let json = scene.data(&format!("{OPTIONS} --format json"));
    assert_eq!(without_clock(&shown(&mut playground, "json")), without_clock(&json));
    let asked: Asked = serde_json::from_value(chosen()).unwrap();
    let command = asked.command();
    assert_eq!(command.split(' ').collect::<Vec<_>>()[1..], OPTIONS.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn a_workload_file_runs_in_the_playground_as_it_does_from_the_command_line() {
    let scene = Scene::new();
    let text = "name = \"reread\"\nphases = [\"done\"]\n[files]\nhot = { size = \"8M\" }\n[tasks.reader]\n\
                steps = [{ read = \"hot\", passes = 3 }, { end = \"done\" }]\n";
    scene.file("workload.toml", text);
    let kernels = ["linux-6.1", "linux-6.12"];
    let mut playground = ran(json!({ "text": text, "kernels": kernels, "mem": "64M" }));
    let options = "compare workload.toml --kernel linux-6.1 --kernel linux-6.12 --mem 64M";
    // What makes each run again names the file, which the playground has none of.
    let without_commands =
        |text: &str| text.split("\nmade by").next().expect("something is shown").to_owned();
    let expected = without_commands(&scene.data(options));
    assert_eq!(without_commands(&shown(&mut playground, "text")), expected);
}

#[test]
fn the_playground_refuses_in_the_words_of_the_command_line() {
    let scene = Scene::new();
    let wrong = [
        ("compare hot-and-strem", json!({ "workload": "hot-and-strem" })),
        ("compare hot-and-stream --mem 5M", json!({ "workload": "hot-and-stream", "mem": "5M" })),
        ("compare hot-and-stream --param ht=1", json!({ "workload": "hot-and-stream", "params": ["ht=1"] })),
        ("compare simoop --kernel linux-5.8", json!({ "workload": "simoop", "kernels": ["linux-5.8"] })),
    ];
    for (options, mut asked) in wrong {
        asked["ask"] = "begin".into();
        let error = ask(&mut Playground::default(), &asked).expect_err(options);
        let mut told = format!("error: {}\n", error["error"].as_str().unwrap());
        for cause in error["causes"].as_array().unwrap() {
            told += &format!("  caused by: {}\n", cause.as_str().unwrap());
        }
        if let Some(hint) = error["hint"].as_str() {
            told += &format!("hint: {hint}\n");
        }
        assert_eq!(told, String::from_utf8(scene.output(options).stderr).unwrap(), "{options}");
    }
}

#[test]
fn a_run_and_a_page_are_explained_as_from_the_command_line() {
    let scene = Scene::new();
    let options = "explain hot-and-stream --kernel linux-5.4 --mem 32M --param hot=1M --param stream=64M \
                   --set vm.swappiness=10";
    let mut playground = ran(chosen());
    for (more, file, page) in [("", "", ""), (" --file hot --page 3-4", "hot", "3-4")] {
        let question = json!({ "ask": "explain", "run": 0, "file": file, "page": page, "format": "text" });
        let told = String::from_utf8(playground.ask(&question.to_string()).unwrap()).unwrap();
        assert_eq!(told, scene.data(&format!("{options}{more}")));
    }
    let wrong = json!({ "ask": "explain", "run": 0, "file": "hto", "page": "", "format": "text" });
    let error = ask(&mut playground, &wrong).unwrap_err();
    assert_eq!(
        (&error["error"], &error["hint"]),
        (&"unknown file with events `hto`".into(), &"did you mean `hot`?".into())
    );
}

/// Looks at a run change nothing of it, and there are as many as a person steps through.
#[test]
fn the_memory_of_each_run_can_be_walked_through() {
    let mut playground = ran(chosen());
    let walks = ask(&mut playground, &json!({ "ask": "walk" })).unwrap();
    for (run, walk) in (0..4).zip(walks.as_array().unwrap()) {
        let moments = walk["moments"].as_array().unwrap();
        assert!((10..=240).contains(&moments.len()), "{} moments", moments.len());
        let times: Vec<u64> = moments.iter().map(|moment| moment["ns"].as_u64().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        let map = playground.ask(&json!({ "ask": "map", "run": run }).to_string()).unwrap();
        assert_eq!(map.len(), moments.len() * walk["places"].as_array().unwrap().len());
        let uses = walk["uses"].as_array().unwrap();
        let inactive = uses.iter().position(|name| name == "inactive_file").unwrap();
        let places = walk["places"].as_array().unwrap().len();
        let place = map[map.len() - places..].iter().position(|byte| usize::from(byte & 15) == inactive);
        let story = ask(&mut playground, &json!({ "ask": "frame", "run": run, "place": place })).unwrap();
        assert!(story.to_string().contains(" of stream, cgroup B: "), "{story}");
        let last = moments.last().unwrap();
        assert_eq!(last["files"][0][0], "hot");
    }
}
