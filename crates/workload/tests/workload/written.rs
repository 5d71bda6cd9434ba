//! Workload files: each mistake in one gets one error, with its place and a remedy.

use crate::fake::{Fake, block_on};
use pagetide_workload::WorkloadSpec;

/// What is said of a file that lacks nothing but what `rest` changes.
fn told(rest: &str) -> String {
    match WorkloadSpec::of_file(rest) {
        Ok(spec) => match spec.build(spec.defaults()) {
            Ok(_) => "nothing is wrong".to_owned(),
            Err(error) => format!("{error} | {}", error.hint().unwrap_or_default()),
        },
        Err(mistake) => format!("{mistake} | {}", mistake.hint.clone().unwrap_or_default()),
    }
}

/// A file with one task and these steps.
fn steps(steps: &str) -> String {
    format!(
        "name = \"x\"\nphases = [\"one\", \"two\"]\n[files]\nhot = {{ size = \"1M\" }}\n\
     many = {{ size = \"4k\", count = 9 }}\n\
         [groups.A]\n[tasks.ender]\nsteps = [{{ end = \"one\" }}]\n[tasks.t]\nsteps = [{steps}]\n"
    )
}

/// Files that are wrong.
const FILES: &[&str] = &[
    "",
    "name = 5",
    "name = \"Hot Set\"",
    "name = \"hot-and-stream\"\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"",
    "name = \"x\"\ntasks = 3",
    "name = \"x\"\n[tasks]",
    "name = \"x\"\n[tasks.a]",
    "name = \"x\"\n[tasks.a]\nsteps = []",
    "name = \"x\"\n[tasks.a]\nsteps = 4",
    "name = \"x\"\n[tasks.a]\nsteps = [4]",
    "name = \"x\"\nfoo = 1\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\nphases = [\"a\", \"a\"]\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\nphases = [\"a b\"]\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\nprepares = [\"warm\"]\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\nphases = [\"one\", \"two\"]\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = 5\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = { help = \"h\" }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = { size = \"5x\" }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = { size = \"5M\", least = \"6M\" }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = { count = -3 }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = { share = 1.5 }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nhot = { choice = [] }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nmemory = { size = 1 }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\ntask = { size = 1 }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[files]\nhot = { size = \"$task\" }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[tasks.a]\ncount = \"$task\"\nsteps = [{ sync = true }]",
    "name = \"x\"\n[files]\nhot = { size = -1 }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"$hut\" }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"1M - 2M\" }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"1M / 0\" }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"1M\", count = 0 }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"1M\", count = \"100G\" }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"1M\", state = \"new\" }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\nhot = { size = \"1M\", in_memory = true }\n[tasks.a]\nsteps = [{ read = \"hot\" }]",
    "name = \"x\"\n[files]\n\"../hot\" = { size = \"1M\" }\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[groups.\"A/B\"]\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[groups.A]\n\"memory.max\" = true\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[groups.A]\n[tasks.a]\ngroup = \"B\"\nsteps = [{ sync = true }]",
    "name = \"x\"\n[tasks.a]\ncount = 0\nsteps = [{ sync = true }]",
    "name = \"x\"\n[tasks.a]\nnumber = 2\nsteps = [{ sync = true }]",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { }",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { seconds = \"dun\" }",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { latency = \"get\", percentile = 99 }",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { stat = \"pgscan\" }",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\n\
     m = { vmstat = \"pgscan\", over = \"done\", at = \"done\" }",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { seconds = \"done\", of = \"n\" }",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { seconds = \"done\", better = \"higher\" }",
    "name = [",
    "name = \"x\"\n[groups.A]\nwhen = \"order\"\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[groups.A]\nwhen = \"filesystem = btrfs\"\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[[refuse]]\nparam = \"filesystem\"\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[[refuse]]\nparam = \"filesystem\"\nwhen = \"filesystem = ext4\"\nproblem = \"p\"\n\
     hint = \"h\"\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[params]\nn = { count = \"none\" }\n[files]\nhot = { size = \"1M\" }\n[tasks.a]\n\
     steps = [{ read = \"hot\", passes = \"$n\" }]",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[main]\nsteps = [{ run = \"a\" }]",
    "name = \"x\"\n[tasks.a]\n[main]\nsteps = [{ end = \"done\" }]",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[main]\n\
     steps = [{ turn = \"a\", steps = [{ sync = true }] }, { end = \"done\" }]",
    "name = \"x\"\n[tasks.a]\nsteps = [{ end = \"done\" }]\n[main]\nsteps = [{ run = \"a\" }, { end = \"done\" }]",
    "name = \"x\"\n[tasks.a]\n[main]\nsteps = [{ turn = \"a\", steps = [{ end = \"done\" }] }]",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[main]\nsteps = [{ run = \"b\" }, { end = \"done\" }]",
    "name = \"x\"\n[tasks.a]\n[main]\n\
     steps = [{ turn = \"a\", steps = [{ until = \"done\", steps = [{ sync = true }] }] }]",
    "name = \"x\"\n[tasks.a]\n[main]\nsteps = [{ for = \"1s\", steps = [{ sync = true }] }]",
    "name = \"x\"\n[tasks.a]\ncount = 2\n[main]\n\
     steps = [{ turn = \"a\", steps = [{ sync = true }] }, { end = \"done\" }]",
    "name = \"x\"\n[steps]\nr = [{ sync = true }]\n[tasks.a]\nsteps = [{ sync = true }]",
    "name = \"x\"\n[steps]\ns = [{ do = \"s\" }]\n[tasks.a]\nsteps = [{ do = \"s\" }]",
    "name = \"x\"\n[tasks.a]\nsteps = [{ sync = true }]\n[metrics]\nm = { value = \"1\", per = 0 }",
];

/// Steps that are wrong in a file that is right.
const STEPS: &[&str] = &[
    "{ }",
    "{ raed = \"hot\" }",
    "{ read = \"hut\" }",
    "{ read = 5 }",
    "{ read = \"hot\", order = \"backwards\" }",
    "{ read = \"hot\", order = \"zipf:9\" }",
    "{ read = \"hot\", order = \"$order\" }",
    "{ read = \"hot\", passes = 2, bytes = \"1M\" }",
    "{ read = \"hot\", block = 0 }",
    "{ read = \"hot\", fsync = \"always\" }",
    "{ read = \"hot\", writes = 2 }",
    "{ read = \"hot\", count = \"5000000000000\" }",
    "{ touch = \"heap\" }",
    "{ map = \"heap\" }",
    "{ map = \"heap\", size = 0 }",
    "{ map = \"db\", file = \"many\" }",
    "{ map = \"heap\", size = \"1M\", file = \"hot\" }",
    "{ map = \"heap\", size = \"1M\" }, { advise = \"heap\", as = \"no-reuse\" }",
    "{ advise = \"hot\", as = \"cold\" }",
    "{ create = \"hot\" }",
    "{ unlink = \"new\" }",
    "{ sleep = 5 }",
    "{ sleep = \"5 minutes\" }",
    "{ wait = \"three\" }",
    "{ wait = \"two\" }, { end = \"two\" }",
    "{ end = \"two\" }, { end = \"two\" }",
    "{ wait = \"two\" }",
    "{ repeat = 2, steps = [{ end = \"two\" }] }",
    "{ repeat = 1000000000, steps = [{ repeat = 1000000000, steps = [{ sync = true }] }] }",
    "{ for = \"48 * 3600 * 1s\", steps = [{ sync = true }] }",
    "{ until = \"two\", steps = [{ sync = true }] }, { end = \"two\" }",
    "{ cgroup = \"B\", set = \"memory.high\", to = \"1M\" }",
    "{ cgroup = \"A\", to = \"1M\" }",
    "{ sysctl = \"vm.swappiness\" }",
    "{ drop_caches = 7 }",
    "{ read = \"many\", own = true, in_turn = true }",
    "{ run = \"ender\" }",
    "{ do = \"pass\" }",
    "{ flush = \"B\" }",
    "{ fill = \"heap\" }",
    "{ reclaim = \"1M\", group = \"B\", label = \"asked\" }",
    "{ reclaim = \"1M\" }",
    "{ steps = [{ end = \"two\" }], when = \"filesystem = ext4\" }",
    "{ resident = \"hot\" }",
    "{ wait = \"one\", when = \"filesystem = ext4\" }",
    "{ read = \"hot\", write_each = 2 }",
    "{ read = \"hot\", draw = \"a b\" }",
    "{ map = \"heap\", size = \"1M\" }, { unmap = \"heap\" }, { touch = \"heap\" }",
    "{ repeat = 1, steps = [{ repeat = 1, steps = [{ repeat = 1, steps = [{ repeat = 1, steps = [{ repeat = 1, \
         steps = [{ repeat = 1, steps = [{ repeat = 1, steps = [{ sync = true }] }] }] }] }] }] }] }",
];

#[test]
fn every_mistake_in_a_file_is_told_once_with_its_place() {
    let all = FILES.iter().map(|wrong| told(wrong)).chain(STEPS.iter().map(|wrong| told(&steps(wrong))));
    let all: Vec<String> = all.collect();
    assert!(all.len() >= 60);
    assert!(all.iter().all(|told| told != "nothing is wrong"), "{all:#?}");
    insta::assert_snapshot!(all.join("\n"), @r#"
    line 1, column 1: the file has no `name` | add `name = "my-server"`
    line 1, column 8: `name` is a whole number, not a text | 
    line 1, column 8: `Hot Set` is no name of a workload | a name has small letters, digits and `-`
    `hot-and-stream` is the name of a built-in workload | give it another one in the line `name = ...`
    line 1, column 1: the file has no `tasks` | add `tasks = { reader = { steps = [...] } }`
    line 2, column 9: `tasks` is a whole number, not a table | 
    line 2, column 1: there is no task | write `[tasks.reader]`
    line 2, column 1: task `a` has no `steps` | add `steps = [{ read = "hot" }]`
    line 3, column 9: task `a` has no steps | write `steps = [{ read = "hot" }]`
    line 3, column 9: `steps` is a whole number, not a list | 
    line 3, column 10: step 1 of task `a` is a whole number, not a table | 
    line 2, column 1: unknown key `foo` of the file | known names: `name`, `help`, `params`, `phases`, `prepares`, `keep_caches`, `groups`, `files`, `tasks`, `metrics`, `varies`, `refuse` and 2 more
    line 2, column 16: `a` is named twice | leave one of them out
    line 2, column 11: `a b` is no name | a name has letters, digits, `_`, `-` and `.`
    line 2, column 13: unknown phase `warm` | known names: `done`
    no task ends phase `one` | add a step `{ end = "one" }` to the task that it is about
    line 3, column 7: parameter `hot` is a whole number, not a table | 
    line 3, column 7: parameter `hot` needs one of `size`, `count`, `share`, `choice` | write what it is where nobody gives it: `hot = { size = "50M" }`
    line 3, column 7: parameter `hot`: `5x` is not a size | 
    line 3, column 7: parameter `hot`: 5M is outside of 6M to 16T | 
    line 3, column 7: parameter `hot`: `-3` is not a whole number from 0 to 2^64 - 1 | 
    line 3, column 7: parameter `hot`: `1.5` is not a share from 0 to 1, such as 0.25 | 
    line 3, column 18: `choice` is an empty list | 
    line 3, column 1: `memory` is no name of a parameter | letters, digits and `_`; `$memory` is the machine's memory, `$task` a task's number
    line 3, column 1: `task` is no name of a parameter | letters, digits and `_`; `$memory` is the machine's memory, `$task` a task's number
    line 3, column 16: unknown parameter `task` | known names: `memory`
    line 3, column 9: unknown parameter `task` | known names: `memory`
    line 3, column 16: `size`: `-1` has `-` where an amount should be | 
    line 3, column 7: file `hot` has no `size` | add `size = "1G"`
    line 3, column 16: unknown parameter `hut` | known names: `memory`
    file `hot`: `1048576 - 2097152` comes to less than 0 | change the parameters, or the amount in the file
    file `hot`: `1048576 / 0` divides by 0 | change the parameters, or the amount in the file
    file `hot`: there are 0, and from 1 to 10000000 can be | change the parameters, or the amount in the file
    file `hot`: there are 100000000000, and from 1 to 10000000 can be | change the parameters, or the amount in the file
    line 3, column 30: unknown state `new` | known names: `laid-out`, `written`, `empty`, `absent`
    line 3, column 1: a file in memory cannot be laid out on a disk | add `state = "written"`: what lies in memory was written there
    line 3, column 1: `../hot` is no name | a name has letters, digits, `_`, `-` and `.`
    line 2, column 9: cgroup `A/B` lies in `A`, which is not there before it | write `[groups."A"]` above it
    line 3, column 16: `memory.max` is true or false, not a text or a number | 
    line 4, column 9: unknown cgroup `B` | did you mean `A`?
    task `a`: there are 0, and from 1 to 10000 can be | change the parameters, or the amount in the file
    line 3, column 1: unknown key `number` of task `a` | known names: `when`, `count`, `group`, `cpu`, `begins_within`, `steps`
    line 5, column 5: metric `m` needs one of `seconds`, `resident`, `vmstat`, `stat`, `events`, `latency`, `rate`, `operations`, `took`, `rates`, `found`, `value` | such as `resident = "hot"` or `vmstat = "pgscan_direct"`
    line 5, column 17: unknown phase `dun` | known names: `done`
    line 5, column 17: unknown label `get` | give the step that it is about `label = "get"`
    line 5, column 5: metric `m` has no `group` | add `group = "A"`
    line 5, column 5: metric `m` has no span of time | `over` is a phase, `at` the end of one, `after` and `at` lie between the ends of two
    line 4, column 1: unknown metric `n` | did you mean `m`?
    line 5, column 34: unknown direction `higher` | known names: `more`, `less`, `neither`
    line 1, column 9: unclosed array, expected `]` | 
    line 3, column 8: `order` says nothing of a parameter | write `order = random`, or `limit != none`
    line 3, column 8: parameter `filesystem`: unknown choice `btrfs` | known names: `ext4`, `xfs`
    line 2, column 1: what is refused has no `when` | add `when = "order = random"`
    parameter `filesystem`: p | h
    task `a`: `$n` hangs on a parameter that is not set | change the parameters, or the amount in the file
    `main` does not end the phases in their order, each once | `main` needs done, in this order
    task `a` has steps of its own and runs, or it has turns: one of both | `run` starts a task with steps, `turn` has steps itself
    task `a` has steps of its own and runs, or it has turns: one of both | `run` starts a task with steps, `turn` has steps itself
    task `a` waits for a phase or ends one, which `main` does | leave the step out, or `[main]`
    line 4, column 35: `end` means nothing here | phases end in the steps of `[main]`
    line 5, column 18: unknown task `b` | did you mean `a`?
    line 4, column 35: `until` means nothing here: `main` and turns have one order | write `repeat`
    line 4, column 12: `for` means nothing here: `main` and turns have one order | write `repeat`
    task `a` takes turns: it is one, begins at once and stays on CPU 0 | leave `count`, `cpu` and `begins_within` out
    line 3, column 1: `r` means nothing here, in `steps` | leave it out
    line 3, column 13: there are no steps that have a name, or `do` stands in such steps itself | write `[steps]` and `NAME = [...]`
    metric `m` is divided by 0 | change the parameters, or the amount in the file
    line 10, column 10: step 1 of task `t` is empty | write `{ read = "hot" }`
    line 10, column 12: unknown step `raed` | did you mean `read`?
    line 10, column 19: unknown file `hut` | did you mean `hot`?
    line 10, column 19: `read` is a whole number, not a text | 
    line 10, column 34: unknown order `backwards` | known names: `sequential`, `random`, `shuffled`, `zipf`, `zipf:0.9`
    line 10, column 34: unknown order `zipf:9` | did you mean `zipf` or `zipf:0.9`?
    line 10, column 34: unknown parameter `order` | known names: `filesystem`
    line 10, column 38: step 1 of task `t` says twice how much it does | keep one of `passes`, `count`, `bytes`
    task `t`: a call on `hot` has 0 bytes, and from 1 to 1T can have | change the parameters, or the amount in the file
    line 10, column 34: `fsync`: `always` is not a number of objects or requests | 
    line 10, column 35: `writes` is a share from 0 to 1, not `2` | 
    task `t` makes some 5000000000000 calls; 10000000000 at most can be made | change the parameters, or the amount in the file
    line 10, column 20: unknown mapping `heap` | map it before, in the same task: `{ map = "heap", size = "100M" }`
    line 10, column 10: step 1 of task `t` has no `size` | add `size = "100M"`
    task `t`: mapping `heap` has no size | change the parameters, or the amount in the file
    line 10, column 31: `many` is many files, and this is about one | 
    line 10, column 26: `size` means nothing here, in step 1 of task `t` | leave it out
    line 10, column 65: unknown advice `no-reuse` | known names: `normal`, `random`, `sequential`, `will-need`, `dont-need`, `huge-page`, `no-huge-page`, `cold`, `page-out`, `free`
    line 10, column 33: unknown advice `cold` | known names: `normal`, `random`, `sequential`, `will-need`, `dont-need`, `no-reuse`
    line 10, column 21: `hot` is there already, as a file | create files in a directory of another name
    line 10, column 21: unknown directory `new` | a task removes what it created before: `{ create = "new", count = 100 }`
    line 10, column 20: `sleep`: `5` is no time: write `20ms`, or `$pause * 1ms` | 
    line 10, column 20: `sleep`: `5 minutes` goes on with `minutes`, which is no operator | 
    line 10, column 19: unknown phase `three` | known names: `one`, `two`
    these wait for ever: task `t` for phase `two` | phases end in the order of `phases`; the next is `two`, which `t` must come to end
    task `t` ends phase `two` twice | a task says once that its part of a phase is over
    these wait for ever: task `t` for phase `two` | phase `two` ends with the last task; let another step end it
    line 10, column 35: a phase cannot end in steps that are made again | put `end` behind them
    task `t` makes some 1000000000000000000 calls; 10000000000 at most can be made | change the parameters, or the amount in the file
    task `t`: steps are made again for a day at most | change the parameters, or the amount in the file
    these wait for ever: task `t` for phase `two` | phases end in the order of `phases`; the next is `two`, which `t` must come to end
    line 10, column 21: unknown cgroup `B` | did you mean `A`?
    line 10, column 10: step 1 of task `t` has no `set` | add `set = "memory.high"`
    line 10, column 10: step 1 of task `t` has no `to` | add `to = "10"`
    line 10, column 26: `drop_caches` is 1, 2 or 3 | 
    line 10, column 27: `own` and `in_turn` do not go together | leave one of them out; `own` keeps a task to whole files
    line 10, column 12: `run` is no step of a task | tasks are let go in `[main]`
    line 10, column 17: there are no steps that have a name, or `do` stands in such steps itself | write `[steps]` and `NAME = [...]`
    line 10, column 20: unknown cgroup `B` | did you mean `A`?
    line 10, column 19: unknown mapping `heap` | map it before, in the same task: `{ map = "heap", size = "100M" }`
    line 10, column 36: unknown cgroup `B` | did you mean `A`?
    line 10, column 10: step 1 of task `t` has no `label` | add `label = "asked"`
    line 10, column 23: a phase cannot end in steps that are made again | put `end` behind them
    line 10, column 10: step 1 of task `t` has no `label` | add `label = "kept"`
    line 10, column 12: `wait` hangs on no parameter | leave `when` out
    line 10, column 26: `write_each` means nothing here, in step 1 of task `t` | leave it out
    line 10, column 33: `a b` is no name | a name has letters, digits, `_`, `-` and `.`
    line 10, column 71: unknown mapping `heap` | map it before, in the same task: `{ map = "heap", size = "100M" }`
    line 10, column 171: steps lie in one another 6 deep at most |
    "#);
}

/// A guest of 6.12 failed with "file exists" in one of two runs of four tasks.
#[test]
fn a_file_that_another_task_made_first_is_written_to_all_the_same() {
    let text = "name = \"log\"\nhelp = \"a log\"\n[files]\nlog = { size = \"4k\", state = \"absent\" }\n\
        [groups.G]\n[tasks.writer]\ngroup = \"G\"\nsteps = [{ write = \"log\" }]\n[main]\nsteps = [{ run = \"writer\" }, { end = \"done\" }]\n";
    let workload = WorkloadSpec::of_file(text).unwrap().with([]).unwrap();
    let fake = Fake::where_another_task_is_faster();
    let failed = block_on(workload.run(fake.clone())).unwrap_err();
    let log = fake.log();
    let opens: Vec<&str> =
        log.iter().map(|line| line.trim()).filter(|line| line.starts_with("open log")).collect();
    assert_eq!(opens, ["open log ReadWrite", "open log Create", "open log ReadWrite"], "{failed}");
}
