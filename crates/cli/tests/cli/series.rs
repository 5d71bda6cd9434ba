//! `pagetide size` of what Prometheus has of a container: what it says, which container, and wrong inputs.

use crate::support::{Scene, refused};

const MIB: u64 = 1 << 20;

/// An answer of `query_range`: each of these series of one container, every 30 s.
fn answer(pod: &str, container: &str, series: &[(&str, &dyn Fn(u64) -> u64)]) -> String {
    let of = |(name, value): &(&str, &dyn Fn(u64) -> u64)| {
        let values: Vec<String> =
            (0..100).map(|i| format!("[{}, \"{}\"]", 1_700_000_000 + 30 * i, value(i))).collect();
        format!(
            "{{\"metric\": {{\"__name__\": \"{name}\", \"pod\": \"{pod}\", \"container\": \"{container}\"}}, \"values\": [{}]}}",
            values.join(", ")
        )
    };
    let all: Vec<String> = series.iter().map(of).collect();
    format!(
        "{{\"status\": \"success\", \"data\": {{\"resultType\": \"matrix\", \"result\": [{}]}}}}\n",
        all.join(", ")
    )
}

/// Grows from 200 to 398 MiB under a limit of 1 GiB, of which 120 MiB are anonymous.
fn web(pod: &str) -> String {
    answer(
        pod,
        "web",
        &[
            ("container_memory_usage_bytes", &|i| (200 + 2 * i) * MIB),
            ("container_memory_working_set_bytes", &|i| (150 + i) * MIB),
            ("container_memory_rss", &|_| 120 * MIB),
            ("container_spec_memory_limit_bytes", &|_| 1024 * MIB),
            ("container_pressure_memory_waiting_seconds_total", &|_| 0),
        ],
    )
}

/// At its limit, and waits three seconds of thirty; two tasks are killed.
fn tight() -> String {
    answer(
        "db-0",
        "db",
        &[
            ("container_memory_usage_bytes", &|_| 511 * MIB),
            ("container_memory_rss", &|_| 300 * MIB),
            ("container_spec_memory_limit_bytes", &|_| 512 * MIB),
            ("container_pressure_memory_waiting_seconds_total", &|i| 3 * i),
            ("container_oom_events_total", &|i| if i < 50 { 0 } else { 2 }),
        ],
    )
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_series_reads_from_what_to_set_to_what_it_rests_on() {
    let scene = Scene::new();
    scene.file("usage.json", web("web-1") + &web("web-2"));
    insta::assert_snapshot!(scene.data("size usage.json --patch vpa/web"), @"
    usage.json (pod=web-1 container=web, 2 replicas): 200 samples over 2970 s

    memory.high 250 MiB, memory.max 440 MiB, memory.low 120 MiB
      what is enough lies between 120 MiB and 398 MiB
      120 MiB was anonymous: without swap a lesser limit kills
      with 398 MiB nothing was missing: it used no more
      memory.high is the peak of its working set: what the kernel called active,
        not what reads would cost without it
      memory.max is 10 % above what is enough (--headroom), memory.low what was
        anonymous
      nearer no series tells: `pagetide capture --attach PID`, and `pagetide size`
        of that, give the curve

    what was seen
     peak of                   amount
     usage                    398 MiB
     working set (cAdvisor)   249 MiB
     anonymous memory         120 MiB
     swapped out                    -
     limit                   1024 MiB

    what others set by the same series
     rule                                              limit
     VPA: 90th percentile of the working set + 15 %  276 MiB  not known
     KRR: its maximum + 15 %                         288 MiB  not known

    to paste
      systemd, in the [Service] section of the unit
        MemoryMax=440M
        MemoryHigh=250M
        MemoryLow=120M
        (MemoryLow protects only as far as the slices above it do, too)
      Docker, options of `docker run`
        --memory=440m --memory-swap=440m --memory-reservation=120m
        (Docker has no option for memory.high: the group is first limited at
         memory.max. --memory-swap equal to --memory means no swap, as was
         simulated)
      Kubernetes, of the container
        resources:
          requests:
            memory: 120Mi
          limits:
            memory: 440Mi
        (the request decides where a pod goes, and protects nothing unless the
         feature gate MemoryQoS is on: then it is memory.min, and memory.high
         follows from request and limit by a formula of its own. Without it
         memory.high is not set)
      Kubernetes, bounds of a VerticalPodAutoscaler for `kubectl apply -f FILE`
        apiVersion: autoscaling.k8s.io/v1
        kind: VerticalPodAutoscaler
        metadata:
          name: web
        spec:
          targetRef:
            apiVersion: apps/v1
            kind: Deployment
            name: web
          resourcePolicy:
            containerPolicies:
            - containerName: '*'
              controlledResources: [memory]
              minAllowed:
                memory: 250Mi
              maxAllowed:
                memory: 440Mi
        (what it recommends by its own samples stays between what keeps the target
         and memory.max; it sets requests, and limits in their proportion)

    what it rests on
      - Peaks of samples: what rose and fell between two of them was not seen.
      - Nothing was run: it holds for the load of that time.

    made by
      pagetide size usage.json
    ");
}

#[test]
fn a_limit_that_was_too_small_is_told_and_nothing_is_recommended() {
    let scene = Scene::new();
    scene.file("tight.json", tight());
    let found = json(&scene.data("size tight.json --format json"));
    let mib = |name: &str| found[name].as_u64().map(|bytes| bytes / MIB);
    assert_eq!((mib("least_bytes"), mib("enough_bytes")), (Some(512), None), "{found}");
    assert!(found["advice"].is_null() && found["killed"] == 2, "{found}");
    let waited = found["waited_ratio"].as_f64().unwrap();
    assert!((waited - 0.1).abs() < 1e-9, "{waited}");
    let text = scene.data("size tight.json");
    assert!(
        text.contains("no recommendation\n") && text.contains("its limit of 512 MiB was too small"),
        "{text}"
    );
}

/// A file of some of the series.
fn found(scene: &Scene, series: &[(&str, u64)]) -> (serde_json::Value, String) {
    let constant: Vec<Box<dyn Fn(u64) -> u64>> =
        series.iter().map(|&(_, mib)| Box::new(move |_| mib * MIB) as Box<dyn Fn(u64) -> u64>).collect();
    let named: Vec<(&str, &dyn Fn(u64) -> u64)> =
        series.iter().zip(&constant).map(|((name, _), value)| (*name, &**value)).collect();
    scene.file("some.json", answer("web-1", "web", &named));
    (json(&scene.data("size some.json --format json")), scene.data("size some.json"))
}

#[test]
fn a_working_set_without_usage_does_not_say_what_is_enough() {
    let (found, text) = found(&Scene::new(), &[("container_memory_working_set_bytes", 206)]);
    assert!(found["enough_bytes"].is_null() && found["advice"].is_null(), "{found}");
    assert!(found["usage_bytes"].is_null() && found["rules"][1]["verdict"] == "not known", "{found}");
    assert!(text.contains("its usage is not in it"), "{text}");
}

#[test]
fn usage_alone_names_no_anonymous_memory_and_no_more_than_is_enough() {
    let (found, text) = found(&Scene::new(), &[("container_memory_usage_bytes", 309)]);
    let advice = &found["advice"];
    assert_eq!(
        (&advice["memory_high_bytes"], &advice["memory_low_bytes"]),
        (&found["usage_bytes"], &found["usage_bytes"])
    );
    assert!(found["working_set_bytes"].is_null() && found["rules"].as_array().unwrap().is_empty(), "{found}");
    assert!(text.contains("what was anonymous is not in it") && !text.contains("what others set"), "{text}");
}

#[test]
fn anonymous_memory_above_usage_is_a_contradiction_and_no_recommendation() {
    let series = [("container_memory_usage_bytes", 309), ("container_memory_rss", 500)];
    let (found, text) = found(&Scene::new(), &series);
    assert!(found["enough_bytes"].is_null() && found["advice"].is_null(), "{found}");
    assert!(text.contains("the series contradict each other"), "{text}");
}

#[test]
fn a_limit_at_which_tasks_only_waited_is_not_too_small_for_kills() {
    let scene = Scene::new();
    let series = tight().replace("container_oom_events_total", "other_total");
    scene.file("tight.json", series);
    let text = scene.data("size tight.json");
    assert!(text.contains("its limit of 512 MiB was too small: 10.0 % of the time"), "{text}");
}

/// cAdvisor's own text, in milliseconds and with numbers as Go writes them; and as of OpenMetrics, in seconds.
#[test]
fn the_text_of_several_scrapes_says_the_same_as_an_answer() {
    let scene = Scene::new();
    let lines = |time: &dyn Fn(u64) -> String| -> String {
        let of = |i: u64| {
            let at = time(1_700_000_000 + 30 * i);
            let labels = "{container=\"web\",pod=\"web-1\",image=\"a\\\"b\"}";
            format!(
                "container_memory_usage_bytes{labels} {:e} {at}\ncontainer_memory_working_set_bytes{labels} {} {at}\n\
                 container_memory_rss{labels} {} {at}\nother_metric 7\n",
                ((200 + 2 * i) * MIB) as f64,
                (150 + i) * MIB,
                120 * MIB
            )
        };
        format!("# TYPE container_memory_usage_bytes gauge\n{}", (0..100).map(of).collect::<String>())
    };
    scene.file("usage.json", web("web-1"));
    scene.file("usage.prom", lines(&|seconds| format!("{seconds}000")));
    scene.file("usage.om", lines(&|seconds| format!("{seconds}.000")));
    let said = |file: &str| {
        let found = json(&scene.data(&format!("size {file} --format json")));
        let names =
            ["usage_bytes", "working_set_bytes", "anonymous_bytes", "enough_bytes", "seconds", "samples"];
        names.map(|name| found[name].clone())
    };
    assert_eq!(said("usage.prom"), said("usage.json"));
    assert_eq!(said("usage.om"), said("usage.json"));
    let csv = scene.data("size usage.prom --format csv");
    assert!(csv.starts_with("quantity,bytes\nusage,"), "{csv}");
    scene.data("size usage.prom -q --page page.html");
    assert!(std::fs::read_to_string(scene.path().join("page.html")).unwrap().contains("MemoryHigh="));
}

#[test]
fn a_series_that_says_nothing_is_refused_with_what_to_do() {
    let scene = Scene::new();
    let metric = |text: &str| {
        format!("{{\"status\": \"success\", \"data\": {{\"resultType\": \"matrix\", \"result\": [{text}]}}}}")
    };
    scene
        .file("both.json", web("web-1") + &tight())
        .file("cut.json", &web("web-1")[..900])
        .file(
            "vector.json",
            "{\"status\": \"success\", \"data\": {\"resultType\": \"vector\", \"result\": []}}",
        )
        .file("error.json", "{\"status\": \"error\", \"errorType\": \"timeout\", \"error\": \"timed out\"}")
        .file("unnamed.json", metric("{\"metric\": {\"pod\": \"a\"}, \"values\": [[1, \"2\"]]}"))
        .file("nothing.json", metric(""))
        .file("timeless.prom", "container_memory_usage_bytes{container=\"web\"} 5\n")
        .file("cut.prom", "container_memory_usage_bytes{container=\"web 5 1700000000000\n");
    let shown = refused(
        &scene,
        &[
            "size both.json",
            "size both.json --label container=cache",
            "size both.json --label container",
            "size cut.json",
            "size vector.json",
            "size error.json",
            "size unnamed.json",
            "size nothing.json",
            "size timeless.prom",
            "size cut.prom",
            "size timeless.prom --limits 1G",
            "size timeless.prom --out runs",
            "size missing.json --label container=web",
        ],
    );
    for said in shown.split("\n$ ") {
        assert!(said.contains("exit 1") && said.contains("hint"), "{said}");
    }
    for said in [
        "several containers",
        "db-0",
        "Prometheus says: timed out",
        "there is no time",
        "`--limits` is for runs",
    ] {
        assert!(shown.contains(said), "no `{said}` in {shown}");
    }
    assert!(
        scene
            .data("size both.json --label container=web -q")
            .starts_with("both.json (pod=web-1 container=web)")
    );
}
