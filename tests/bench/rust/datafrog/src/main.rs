//! Workloads by hand in datafrog (one thread; no recursive minimum, so no W5 and W6). frog_static WORKLOAD FOLDER
#[path = "../../io.rs"]
mod io;
use datafrog::{Iteration, Relation, RelationLeaper};
use std::time::Instant;
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
type P = (u32, u32);

fn flip(rows: &[P]) -> Relation<P> { rows.iter().map(|&(x, y)| (y, x)).collect() }
fn rel(rows: &[P]) -> Relation<P> { rows.iter().copied().collect() }

fn closure(edge: &[P]) -> Vec<(&'static str, u64)> {
    let mut it = Iteration::new();
    let path = it.variable::<P>("path"); // (y, x)
    path.insert(flip(edge));
    let edge = rel(edge);
    while it.changed() { path.from_join(&path, &edge, |_, &x, &z| (z, x)); }
    vec![("path", path.complete().len() as u64)]
}
fn same_generation(parent: &[P]) -> Vec<(&'static str, u64)> {
    let by = flip(parent); // (parent, child)
    let mut it = Iteration::new();
    let sg = it.variable::<P>("sg");
    let half = it.variable::<P>("half"); // (b, x)
    sg.insert(Relation::from_join(&by, &by, |_, &x, &y| (x, y)));
    while it.changed() {
        half.from_join(&sg, &by, |_, &b, &x| (b, x));
        sg.from_join(&half, &by, |_, &x, &y| (x, y));
    }
    vec![("sg", sg.complete().len() as u64)]
}
fn reach(edge: &[P], source: &[u32]) -> Vec<(&'static str, u64)> {
    let edge = rel(edge);
    let mut it = Iteration::new();
    let reach = it.variable::<(u32, ())>("reach");
    reach.extend(source.iter().map(|&x| (x, ())));
    while it.changed() { reach.from_join(&reach, &edge, |_, &(), &y| (y, ())); }
    vec![("reach", reach.complete().len() as u64)]
}
fn triangles(edge: &[P]) -> Vec<(&'static str, u64)> {
    let edge = rel(edge);
    let found = Relation::from_leapjoin(&edge, (edge.extend_with(|&(_, y): &P| y), edge.extend_with(|&(x, _): &P| x)), |&(x, y), &z| (x, y, z));
    vec![("triangle", found.len() as u64)]
}
fn points_to(address: &[P], assign: &[P], load: &[P], store: &[P]) -> Vec<(&'static str, u64)> {
    let (assign, load, store) = (flip(assign), flip(load), rel(store));
    let mut it = Iteration::new();
    let pt = it.variable::<P>("points_to");
    let loads = it.variable::<P>("loads"); // (p, x)
    let stores = it.variable::<P>("stores"); // (y, p)
    pt.insert(rel(address));
    while it.changed() {
        pt.from_join(&pt, &assign, |_, &o, &x| (x, o));
        loads.from_join(&pt, &load, |_, &p, &x| (p, x));
        pt.from_join(&loads, &pt, |_, &x, &o| (x, o));
        stores.from_join(&pt, &store, |_, &p, &y| (y, p));
        pt.from_join(&stores, &pt, |_, &p, &o| (p, o));
    }
    vec![("points_to", pt.complete().len() as u64)]
}
fn pointer_analysis(assign: &[P], deref: &[P]) -> Vec<(&'static str, u64)> {
    let by_second = flip(assign);
    let deref = rel(deref);
    let mut it = Iteration::new();
    let vf = it.variable::<P>("value_flow");
    let vf_back = it.variable::<P>("value_flow by its second");
    let ma = it.variable::<P>("memory_alias");
    let va = it.variable::<P>("value_alias");
    let step = it.variable::<P>("step"); // (w, x)
    let half = it.variable::<P>("half"); // (z, x)
    vf.extend(assign.iter().copied());
    vf.extend(assign.iter().flat_map(|&(x, y)| [(x, x), (y, y)]));
    ma.extend(assign.iter().flat_map(|&(x, y)| [(x, x), (y, y)]));
    while it.changed() {
        vf_back.from_map(&vf, |&(x, y)| (y, x));
        vf.from_join(&ma, &by_second, |_, &y, &x| (x, y));
        vf.from_join(&vf_back, &vf, |_, &x, &y| (x, y));
        step.from_join(&vf, &ma, |_, &x, &w| (w, x));
        va.from_join(&vf, &vf, |_, &x, &y| (x, y));
        va.from_join(&step, &vf, |_, &x, &y| (x, y));
        half.from_join(&va, &deref, |_, &z, &x| (z, x));
        ma.from_join(&half, &deref, |_, &x, &w| (x, w));
    }
    vec![("value_flow", vf.complete().len() as u64), ("memory_alias", ma.complete().len() as u64), ("value_alias", va.complete().len() as u64)]
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (w, folder) = (a[1].as_str(), a[2].as_str());
    let names: &[&str] = match w { "W1" | "W2" | "W4" | "W7" => &["edge"], "W3" => &["parent"], "W8" => &["addressof", "assign", "load", "store"], "W9" => &["assign", "dereference"], _ => panic!("not expressible") };
    let start = Instant::now();
    let g: Vec<Vec<P>> = names.iter().map(|n| io::pairs(&format!("{folder}/{n}.u32"))).collect();
    let source = if w == "W4" { io::read(&format!("{folder}/source.u32")) } else { vec![] };
    let (load, mb) = (start.elapsed().as_secs_f64(), io::rss_mb());
    let answer = match w {
        "W1" | "W2" => closure(&g[0]), "W3" => same_generation(&g[0]), "W4" => reach(&g[0], &source), "W7" => triangles(&g[0]),
        "W8" => points_to(&g[0], &g[1], &g[2], &g[3]), _ => pointer_analysis(&g[0], &g[1]),
    };
    let eval = start.elapsed().as_secs_f64() - load;
    let answer: Vec<String> = answer.iter().map(|(n, v)| format!("\"{n}\": {v}")).collect();
    println!("{{\"eval\": {eval:.6}, \"load\": {load:.6}, \"loaded_mb\": {mb:.1}, \"peak_mb\": {:.1}, \"answer\": {{{}}}}}", io::peak_mb(), answer.join(", "));
    std::process::exit(0);
}
