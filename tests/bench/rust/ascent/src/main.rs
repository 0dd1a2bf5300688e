//! Each workload by ascent! and by ascent_par!, in modules of their own. ascent_static serial|par WORKLOAD FOLDER;
//! RAYON_NUM_THREADS says how many threads `par` has.
#[path = "../../io.rs"]
mod io;
use std::time::Instant;
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
fn told(start: Instant, load: f64, loaded_mb: f64, answer: Vec<(&str, u64)>) {
    let eval = start.elapsed().as_secs_f64() - load;
    let answer: Vec<String> = answer.iter().map(|(n, v)| format!("\"{n}\": {v}")).collect();
    println!("{{\"eval\": {eval:.6}, \"load\": {load:.6}, \"loaded_mb\": {loaded_mb:.1}, \"peak_mb\": {:.1}, \"answer\": {{{}}}}}", io::peak_mb(), answer.join(", "));
}
mod serial_w1 {
    use super::*; use ascent::ascent;
    ascent! {
    relation edge(u32, u32); relation path(u32, u32);
    path(x, y) <-- edge(x, y);
    path(x, z) <-- path(x, y), edge(y, z);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("path", prog.path.len() as u64)]);
        std::process::exit(0);
    }
}
mod serial_w3 {
    use super::*; use ascent::ascent;
    ascent! {
    relation parent(u32, u32); relation sg(u32, u32);
    sg(x, y) <-- parent(x, p), parent(y, p);
    sg(x, y) <-- parent(x, a), sg(a, b), parent(y, b);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.parent = io::pairs(&format!("{folder}/parent.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("sg", prog.sg.len() as u64)]);
        std::process::exit(0);
    }
}
mod serial_w4 {
    use super::*; use ascent::ascent;
    ascent! {
    relation edge(u32, u32); relation source(u32); relation reach(u32);
    reach(x) <-- source(x);
    reach(y) <-- reach(x), edge(x, y);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect(); prog.source = io::read(&format!("{folder}/source.u32")).into_iter().map(|x| (x,)).collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("reach", prog.reach.len() as u64)]);
        std::process::exit(0);
    }
}
mod serial_w5 {
    use super::*; use ascent::Dual; use ascent::ascent;
    ascent! {
    relation edge(u32, u32); relation node(u32); lattice cc(u32, Dual<u32>); relation component(u32);
    cc(x, Dual(*x)) <-- node(x);
    cc(y, Dual(l.0)) <-- cc(x, l), edge(x, y);
    cc(x, Dual(l.0)) <-- cc(y, l), edge(x, y);
    component(x) <-- cc(x, l), if *x == l.0;
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect(); prog.node = io::read(&format!("{folder}/node.u32")).into_iter().map(|x| (x,)).collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("cc", prog.cc.len() as u64), ("component", prog.component.len() as u64)]);
        std::process::exit(0);
    }
}
mod serial_w6 {
    use super::*; use ascent::Dual; use ascent::ascent;
    ascent! {
    relation edge(u32, u32, u32); relation source(u32); lattice dist(u32, Dual<u32>);
    dist(x, Dual(0)) <-- source(x);
    dist(y, Dual(d.0 + *w)) <-- dist(x, d), edge(x, y, w);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::triples(&format!("{folder}/edge.u32")).into_iter().collect(); prog.source = io::read(&format!("{folder}/source.u32")).into_iter().map(|x| (x,)).collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("dist", prog.dist.len() as u64), ("total", prog.dist.iter().map(|d| d.1.0 as u64).sum::<u64>())]);
        std::process::exit(0);
    }
}
mod serial_w7 {
    use super::*; use ascent::ascent;
    ascent! {
    relation edge(u32, u32); relation triangle(u32, u32, u32);
    triangle(x, y, z) <-- edge(x, y), edge(y, z), edge(x, z);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("triangle", prog.triangle.len() as u64)]);
        std::process::exit(0);
    }
}
mod serial_w8 {
    use super::*; use ascent::ascent;
    ascent! {
    relation addressof(u32, u32); relation assign(u32, u32); relation load(u32, u32); relation store(u32, u32); relation points_to(u32, u32);
    points_to(x, o) <-- addressof(x, o);
    points_to(x, o) <-- assign(x, y), points_to(y, o);
    points_to(x, o) <-- load(x, y), points_to(y, p), points_to(p, o);
    points_to(p, o) <-- store(x, y), points_to(x, p), points_to(y, o);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.addressof = io::pairs(&format!("{folder}/addressof.u32")).into_iter().collect(); prog.assign = io::pairs(&format!("{folder}/assign.u32")).into_iter().collect(); prog.load = io::pairs(&format!("{folder}/load.u32")).into_iter().collect(); prog.store = io::pairs(&format!("{folder}/store.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("points_to", prog.points_to.len() as u64)]);
        std::process::exit(0);
    }
}
mod serial_w9 {
    use super::*; use ascent::ascent;
    ascent! {
    relation assign(u32, u32); relation dereference(u32, u32); relation value_flow(u32, u32); relation memory_alias(u32, u32); relation value_alias(u32, u32);
    value_flow(x, y) <-- assign(x, y);
    value_flow(x, x) <-- assign(x, _);
    value_flow(x, x) <-- assign(_, x);
    value_flow(x, y) <-- assign(x, z), memory_alias(z, y);
    value_flow(x, y) <-- value_flow(x, z), value_flow(z, y);
    memory_alias(x, x) <-- assign(x, _);
    memory_alias(x, x) <-- assign(_, x);
    memory_alias(x, w) <-- dereference(y, x), value_alias(y, z), dereference(z, w);
    value_alias(x, y) <-- value_flow(z, x), value_flow(z, y);
    value_alias(x, y) <-- value_flow(z, x), memory_alias(z, w), value_flow(w, y);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.assign = io::pairs(&format!("{folder}/assign.u32")).into_iter().collect(); prog.dereference = io::pairs(&format!("{folder}/dereference.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("value_flow", prog.value_flow.len() as u64), ("memory_alias", prog.memory_alias.len() as u64), ("value_alias", prog.value_alias.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w1 {
    use super::*; use ascent::ascent_par;
    ascent_par! {
    relation edge(u32, u32); relation path(u32, u32);
    path(x, y) <-- edge(x, y);
    path(x, z) <-- path(x, y), edge(y, z);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("path", prog.path.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w3 {
    use super::*; use ascent::ascent_par;
    ascent_par! {
    relation parent(u32, u32); relation sg(u32, u32);
    sg(x, y) <-- parent(x, p), parent(y, p);
    sg(x, y) <-- parent(x, a), sg(a, b), parent(y, b);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.parent = io::pairs(&format!("{folder}/parent.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("sg", prog.sg.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w4 {
    use super::*; use ascent::ascent_par;
    ascent_par! {
    relation edge(u32, u32); relation source(u32); relation reach(u32);
    reach(x) <-- source(x);
    reach(y) <-- reach(x), edge(x, y);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect(); prog.source = io::read(&format!("{folder}/source.u32")).into_iter().map(|x| (x,)).collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("reach", prog.reach.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w5 {
    use super::*; use ascent::Dual; use ascent::ascent_par;
    ascent_par! {
    relation edge(u32, u32); relation node(u32); lattice cc(u32, Dual<u32>); relation component(u32);
    cc(x, Dual(*x)) <-- node(x);
    cc(y, Dual(l.0)) <-- cc(x, l), edge(x, y);
    cc(x, Dual(l.0)) <-- cc(y, l), edge(x, y);
    component(x) <-- cc(x, l), if *x == l.0;
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect(); prog.node = io::read(&format!("{folder}/node.u32")).into_iter().map(|x| (x,)).collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("cc", prog.cc.len() as u64), ("component", prog.component.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w6 {
    use super::*; use ascent::Dual; use ascent::ascent_par;
    ascent_par! {
    relation edge(u32, u32, u32); relation source(u32); lattice dist(u32, Dual<u32>);
    dist(x, Dual(0)) <-- source(x);
    dist(y, Dual(d.0 + *w)) <-- dist(x, d), edge(x, y, w);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::triples(&format!("{folder}/edge.u32")).into_iter().collect(); prog.source = io::read(&format!("{folder}/source.u32")).into_iter().map(|x| (x,)).collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("dist", prog.dist.len() as u64), ("total", prog.dist.iter().map(|d| d.read().unwrap().1.0 as u64).sum::<u64>())]);
        std::process::exit(0);
    }
}
mod par_w7 {
    use super::*; use ascent::ascent_par;
    ascent_par! {
    relation edge(u32, u32); relation triangle(u32, u32, u32);
    triangle(x, y, z) <-- edge(x, y), edge(y, z), edge(x, z);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.edge = io::pairs(&format!("{folder}/edge.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("triangle", prog.triangle.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w8 {
    use super::*; use ascent::ascent_par;
    ascent_par! {
    relation addressof(u32, u32); relation assign(u32, u32); relation load(u32, u32); relation store(u32, u32); relation points_to(u32, u32);
    points_to(x, o) <-- addressof(x, o);
    points_to(x, o) <-- assign(x, y), points_to(y, o);
    points_to(x, o) <-- load(x, y), points_to(y, p), points_to(p, o);
    points_to(p, o) <-- store(x, y), points_to(x, p), points_to(y, o);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.addressof = io::pairs(&format!("{folder}/addressof.u32")).into_iter().collect(); prog.assign = io::pairs(&format!("{folder}/assign.u32")).into_iter().collect(); prog.load = io::pairs(&format!("{folder}/load.u32")).into_iter().collect(); prog.store = io::pairs(&format!("{folder}/store.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("points_to", prog.points_to.len() as u64)]);
        std::process::exit(0);
    }
}
mod par_w9 {
    use super::*; use ascent::ascent_par;
    ascent_par! {
    relation assign(u32, u32); relation dereference(u32, u32); relation value_flow(u32, u32); relation memory_alias(u32, u32); relation value_alias(u32, u32);
    value_flow(x, y) <-- assign(x, y);
    value_flow(x, x) <-- assign(x, _);
    value_flow(x, x) <-- assign(_, x);
    value_flow(x, y) <-- assign(x, z), memory_alias(z, y);
    value_flow(x, y) <-- value_flow(x, z), value_flow(z, y);
    memory_alias(x, x) <-- assign(x, _);
    memory_alias(x, x) <-- assign(_, x);
    memory_alias(x, w) <-- dereference(y, x), value_alias(y, z), dereference(z, w);
    value_alias(x, y) <-- value_flow(z, x), value_flow(z, y);
    value_alias(x, y) <-- value_flow(z, x), memory_alias(z, w), value_flow(w, y);
    }
    pub fn run(folder: &str) {
        let start = Instant::now();
        let mut prog = AscentProgram::default();
        prog.assign = io::pairs(&format!("{folder}/assign.u32")).into_iter().collect(); prog.dereference = io::pairs(&format!("{folder}/dereference.u32")).into_iter().collect();
        let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
        prog.run();
        told(start, load, mb, vec![("value_flow", prog.value_flow.len() as u64), ("memory_alias", prog.memory_alias.len() as u64), ("value_alias", prog.value_alias.len() as u64)]);
        std::process::exit(0);
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let folder = a[3].clone();
    match (a[1].as_str(), a[2].as_str()) {
        ("serial", "W1" | "W2") => serial_w1::run(&folder),
        ("serial", "W3") => serial_w3::run(&folder),
        ("serial", "W4") => serial_w4::run(&folder),
        ("serial", "W5") => serial_w5::run(&folder),
        ("serial", "W6") => serial_w6::run(&folder),
        ("serial", "W7") => serial_w7::run(&folder),
        ("serial", "W8") => serial_w8::run(&folder),
        ("serial", "W9") => serial_w9::run(&folder),
        ("par", "W1" | "W2") => par_w1::run(&folder),
        ("par", "W3") => par_w3::run(&folder),
        ("par", "W4") => par_w4::run(&folder),
        ("par", "W5") => par_w5::run(&folder),
        ("par", "W6") => par_w6::run(&folder),
        ("par", "W7") => par_w7::run(&folder),
        ("par", "W8") => par_w8::run(&folder),
        ("par", "W9") => par_w9::run(&folder),
        _ => panic!("unknown"),
    }
}
