//! W1..W9 by hand in differential dataflow, evaluated once. dd_static WORKLOAD FOLDER [timely's arguments]
//! Differences are `Present` where a relation only grows, and minima (as in DD's monoid-bfs) where the least value counts.
#[path = "../../io.rs"]
mod io;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use differential_dataflow::difference::{IsZero, Multiply, Present, Semigroup};
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::operators::*;
use differential_dataflow::{ExchangeData, VecCollection};
use serde::{Deserialize, Serialize};
use timely::dataflow::Scope;
use timely::order::{Product, TotalOrder};
use timely::progress::Timestamp;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::hashable::Hashable;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

type P = (u32, u32);
type In = InputSession<(), P, Present>;
type Rows<'s, D> = VecCollection<'s, (), D, Present>;
type Counts = Rc<RefCell<BTreeMap<&'static str, u64>>>;

#[derive(Copy, Clone, Ord, PartialOrd, Eq, PartialEq, Debug, Serialize, Deserialize, Hash)]
pub struct Min(u32);
impl IsZero for Min { fn is_zero(&self) -> bool { false } }
impl Semigroup for Min { fn plus_equals(&mut self, o: &Self) { if o.0 < self.0 { self.0 = o.0 } } }
impl Multiply<Min> for Min { type Output = Min; fn multiply(self, o: &Min) -> Min { Min(self.0 + o.0) } }
impl Multiply<Present> for Min { type Output = Min; fn multiply(self, _: &Present) -> Min { self } }

fn once<'s, T: Timestamp + TotalOrder + Lattice, D: ExchangeData + Hashable>(c: VecCollection<'s, T, D, Present>) -> VecCollection<'s, T, D, Present> {
    c.threshold_semigroup(|_, _, old: Option<&Present>| if old.is_none() { Some(Present) } else { None })
}
fn least<'s, T: Timestamp + TotalOrder + Lattice, D: ExchangeData + Hashable>(c: VecCollection<'s, T, D, Min>) -> VecCollection<'s, T, D, Min> {
    c.threshold_semigroup(|_, new: &Min, old: Option<&Min>| match old {
        Some(o) if o.0 <= new.0 => None,
        _ => Some(*new),
    })
}
fn flip<'s, T: Timestamp>(c: VecCollection<'s, T, P, Present>) -> VecCollection<'s, T, P, Present> {
    c.map_in_place(|p| std::mem::swap(&mut p.0, &mut p.1))
}
fn counted<'s, D: Clone + 'static>(c: Rows<'s, D>, name: &'static str, counts: &Counts) {
    let counts = counts.clone();
    counts.borrow_mut().entry(name).or_insert(0);
    c.inspect_batch(move |_, b| *counts.borrow_mut().get_mut(name).unwrap() += b.len() as u64);
}

fn closure<'s>(scope: Scope<'s, ()>, counts: &Counts) -> Vec<In> {
    let (input, edge) = scope.new_collection();
    let arranged = edge.clone().arrange_by_key();
    let path = scope.iterative::<u32, _, _>(|inner| {
        let (var, path) = Variable::new(inner, Product::new((), 1));
        let next = flip(path).arrange_by_key().join_core(arranged.enter(inner), |_, &x, &z| Some((x, z)));
        let next = once(edge.enter(inner).concat(next));
        var.set(next.clone());
        next.leave(scope)
    });
    counted(path, "path", counts);
    vec![input]
}

fn same_generation<'s>(scope: Scope<'s, ()>, counts: &Counts) -> Vec<In> {
    let (input, parent) = scope.new_collection();
    let by_parent = flip(parent).arrange_by_key();
    let sg = scope.iterative::<u32, _, _>(|inner| {
        let by_parent = by_parent.enter(inner);
        let (var, sg) = Variable::new(inner, Product::new((), 1));
        let next = sg.arrange_by_key()
            .join_core(by_parent.clone(), |_, &b, &x| Some((b, x)))
            .arrange_by_key()
            .join_core(by_parent.clone(), |_, &x, &y| Some((x, y)));
        let first = by_parent.clone().join_core(by_parent, |_, &x, &y| Some((x, y)));
        let next = once(first.concat(next));
        var.set(next.clone());
        next.leave(scope)
    });
    counted(sg, "sg", counts);
    vec![input]
}

fn reach<'s>(scope: Scope<'s, ()>, counts: &Counts) -> (In, InputSession<(), u32, Present>) {
    let (input, edge) = scope.new_collection();
    let (source_input, source) = scope.new_collection();
    let arranged = edge.arrange_by_key();
    let reach = scope.iterative::<u32, _, _>(|inner| {
        let (var, reach) = Variable::new(inner, Product::new((), 1));
        let next = reach.arrange_by_self().join_core(arranged.enter(inner), |_, &(), &y| Some(y));
        let next = once(source.enter(inner).concat(next));
        var.set(next.clone());
        next.leave(scope)
    });
    counted(reach, "reach", counts);
    (input, source_input)
}

/// `late` brings small labels in first, as DD's own `propagate_at` does.
fn components<'s>(scope: Scope<'s, ()>, counts: &Counts, late: bool) -> (In, InputSession<(), u32, Min>) {
    let (input, edge) = scope.new_collection::<P, Present>();
    let (node_input, node) = scope.new_collection::<u32, Min>();
    let both = edge.clone().concat(flip(edge)).arrange_by_key();
    let cc = scope.iterative::<u32, _, _>(|inner| {
        let (var, cc) = Variable::new(inner, Product::new((), 1));
        let first = if late {
            node.enter_at(inner, |&n| 256 * (32 - n.leading_zeros()))
        } else { node.enter(inner) };
        let next = cc.arrange_by_self().join_core(both.enter(inner), |_, &(), &y| Some(y));
        let next = least(first.concat(next));
        var.set(next.clone());
        next.leave(scope)
    });
    let (c, l) = (counts.clone(), counts.clone());
    for name in ["cc", "component"] { counts.borrow_mut().insert(name, 0); }
    cc.consolidate().inspect_batch(move |_, b| {
        *c.borrow_mut().get_mut("cc").unwrap() += b.len() as u64;
        *l.borrow_mut().get_mut("component").unwrap() += b.iter().filter(|(n, _, m)| *n == m.0).count() as u64;
    });
    (input, node_input)
}

fn distances<'s>(scope: Scope<'s, ()>, counts: &Counts) -> (InputSession<(), P, Min>, InputSession<(), u32, Min>) {
    let (input, edge) = scope.new_collection::<P, Min>();
    let (source_input, source) = scope.new_collection::<u32, Min>();
    let arranged = edge.arrange_by_key();
    let dist = scope.iterative::<u32, _, _>(|inner| {
        let (var, dist) = Variable::new(inner, Product::new((), 1));
        let next = dist.arrange_by_self().join_core(arranged.enter(inner), |_, &(), &y| Some(y));
        let next = least(source.enter(inner).concat(next));
        var.set(next.clone());
        next.leave(scope)
    });
    let c = counts.clone();
    for name in ["dist", "total"] { counts.borrow_mut().insert(name, 0); }
    dist.consolidate().inspect_batch(move |_, b| {
        let mut c = c.borrow_mut();
        *c.get_mut("dist").unwrap() += b.len() as u64;
        *c.get_mut("total").unwrap() += b.iter().map(|(_, _, m)| m.0 as u64).sum::<u64>();
    });
    (input, source_input)
}

/// After DD's ngo.rs: of an edge's two ends the one with fewer successors proposes the third corner.
fn triangles<'s>(scope: Scope<'s, ()>, kept: Rc<RefCell<Vec<(u32, u32, u32)>>>) -> InputSession<(), P, i32> {
    let (input, edge) = scope.new_collection::<P, i32>();
    let forward = edge.clone().arrange_by_key();
    let as_self = edge.clone().arrange_by_self();
    let degree = edge.map(|(x, _)| x).count_total_core::<i32>().map(|(x, n)| (x, n)).arrange_by_key();
    let choice = forward.clone()
        .join_core(degree.clone(), |&x, &y, &n| Some((y, (x, n))))
        .arrange_by_key()
        .join_core(degree, |&y, &(x, n), &m| Some((x, y, n <= m)));
    let one = choice.clone().flat_map(|(x, y, first)| if first { Some((x, y)) } else { None }).arrange_by_key()
        .join_core(forward.clone(), |&x, &y, &z| Some(((y, z), x)));
    let other = choice.flat_map(|(x, y, first)| if first { None } else { Some((y, x)) }).arrange_by_key()
        .join_core(forward, |&y, &x, &z| Some(((x, z), y)));
    let one = one.arrange_by_key().join_core(as_self.clone(), |&(y, z), &x, &()| Some((x, y, z)));
    let other = other.arrange_by_key().join_core(as_self, |&(x, z), &y, &()| Some((x, y, z)));
    one.concat(other).inspect_batch(move |_, b| kept.borrow_mut().extend(b.iter().map(|(t, _, _)| *t)));
    input
}

fn points_to<'s>(scope: Scope<'s, ()>, counts: &Counts, dedup: bool) -> Vec<In> {
    let (ai, address) = scope.new_collection();
    let (si, assign) = scope.new_collection();
    let (li, load) = scope.new_collection();
    let (ti, store) = scope.new_collection();
    let assign = flip(assign).arrange_by_key();
    let load = flip(load).arrange_by_key();
    let store = store.arrange_by_key();
    let pt = scope.iterative::<u32, _, _>(|inner| {
        let (var, pt) = Variable::new(inner, Product::new((), 1));
        let pt = pt.arrange_by_key();
        let by_assign = pt.clone().join_core(assign.enter(inner), |_, &o, &x| Some((x, o)));
        let by_load = pt.clone().join_core(load.enter(inner), |_, &p, &x| Some((p, x)));
        let by_load = if dedup { once(by_load) } else { by_load };
        let by_load = by_load.arrange_by_key().join_core(pt.clone(), |_, &x, &o| Some((x, o)));
        let by_store = pt.clone().join_core(store.enter(inner), |_, &p, &y| Some((y, p)));
        let by_store = if dedup { once(by_store) } else { by_store };
        let by_store = by_store.arrange_by_key().join_core(pt, |_, &p, &o| Some((p, o)));
        let next = once(address.enter(inner).concat(by_assign).concat(by_load).concat(by_store));
        var.set(next.clone());
        next.leave(scope)
    });
    counted(pt, "points_to", counts);
    vec![ai, si, li, ti]
}

fn pointer_analysis<'s>(scope: Scope<'s, ()>, counts: &Counts, dedup: bool) -> Vec<In> {
    let (ai, assign) = scope.new_collection();
    let (di, deref) = scope.new_collection();
    let nodes = assign.clone().flat_map(|(x, y)| [(x, x), (y, y)]);
    let by_second = flip(assign.clone()).arrange_by_key();
    let deref = deref.arrange_by_key();
    let (vf, ma, va) = scope.iterative::<u32, _, _>(|inner| {
        let (vf_var, vf) = Variable::new(inner, Product::new((), 1));
        let (ma_var, ma) = Variable::new(inner, Product::new((), 1));
        let deref = deref.enter(inner);
        let nodes = nodes.enter(inner);
        let vf_by_second = flip(vf.clone()).arrange_by_key();
        let vf = vf.arrange_by_key();
        let ma = ma.arrange_by_key();
        let vf_next = vf_by_second.join_core(vf.clone(), |_, &x, &y| Some((x, y)))
            .concat(ma.clone().join_core(by_second.enter(inner), |_, &y, &x| Some((x, y))))
            .concat(assign.enter(inner)).concat(nodes.clone());
        let vf_next = once(vf_next);
        let step = vf.clone().join_core(ma, |_, &x, &w| Some((w, x)));
        let step = if dedup { once(step) } else { step };
        let va = vf.clone().join_core(vf.clone(), |_, &x, &y| Some((x, y)))
            .concat(step.arrange_by_key().join_core(vf, |_, &x, &y| Some((x, y))));
        let va = once(va);
        let half = va.clone().arrange_by_key().join_core(deref.clone(), |_, &z, &x| Some((z, x)));
        let half = if dedup { once(half) } else { half };
        let ma_next = half.arrange_by_key().join_core(deref, |_, &x, &w| Some((x, w))).concat(nodes);
        let ma_next = once(ma_next);
        vf_var.set(vf_next.clone());
        ma_var.set(ma_next.clone());
        (vf_next.leave(scope), ma_next.leave(scope), va.leave(scope))
    });
    counted(vf, "value_flow", counts);
    counted(ma, "memory_alias", counts);
    counted(va, "value_alias", counts);
    vec![ai, di]
}

fn main() {
    let mut args = std::env::args();
    args.next();
    let name = args.next().expect("workload");
    let folder = args.next().expect("folder");
    let rest: Vec<String> = std::iter::once("dd".to_string()).chain(args).collect();
    let start = Instant::now();
    let (workload, variant) = name.split_once(':').map(|(a, b)| (a.to_string(), b.to_string())).unwrap_or((name.clone(), String::new()));
    let relations: &[&str] = match workload.as_str() {
        "W1" | "W2" | "W7" => &["edge"], "W3" => &["parent"], "W4" => &["edge"], "W5" => &["edge"], "W6" => &[],
        "W8" => &["addressof", "assign", "load", "store"], "W9" => &["assign", "dereference"], _ => panic!("unknown workload"),
    };
    let given: Arc<Vec<Vec<P>>> = Arc::new(relations.iter().map(|r| io::pairs(&format!("{folder}/{r}.u32"))).collect());
    let weighted = Arc::new(if workload == "W6" { io::triples(&format!("{folder}/edge.u32")) } else { vec![] });
    let sources: Arc<Vec<u32>> = Arc::new(match workload.as_str() {
        "W4" | "W6" => io::read(&format!("{folder}/source.u32")),
        "W5" => io::read(&format!("{folder}/node.u32")),
        _ => vec![],
    });
    let load = start.elapsed().as_secs_f64();
    let loaded_mb = io::rss_mb();
    let all: Arc<Mutex<(f64, BTreeMap<&'static str, u64>)>> = Arc::new(Mutex::new((0.0, BTreeMap::new())));
    let told = all.clone();
    timely::execute_from_args(rest.into_iter(), move |worker| {
        let (index, peers) = (worker.index(), worker.peers());
        let timer = Instant::now();
        let counts: Counts = Rc::default();
        let kept = Rc::new(RefCell::new(Vec::new()));
        let mine = |i: usize| i % peers == index;
        match workload.as_str() {
            "W4" => {
                let (mut e, mut s) = worker.dataflow(|scope| reach(scope, &counts));
                for (_, p) in given[0].iter().enumerate().filter(|(i, _)| mine(*i)) { e.update(*p, Present); }
                for (_, p) in sources.iter().enumerate().filter(|(i, _)| mine(*i)) { s.update(*p, Present); }
            }
            "W5" => {
                let (mut e, mut s) = worker.dataflow(|scope| components(scope, &counts, variant != "plain"));
                for (_, p) in given[0].iter().enumerate().filter(|(i, _)| mine(*i)) { e.update(*p, Present); }
                for (_, p) in sources.iter().enumerate().filter(|(i, _)| mine(*i)) { s.update(*p, Min(*p)); }
            }
            "W6" => {
                let (mut e, mut s) = worker.dataflow(|scope| distances(scope, &counts));
                for (_, p) in weighted.iter().enumerate().filter(|(i, _)| mine(*i)) { e.update((p.0, p.1), Min(p.2)); }
                for (_, p) in sources.iter().enumerate().filter(|(i, _)| mine(*i)) { s.update(*p, Min(0)); }
            }
            "W7" => {
                let mut e = worker.dataflow(|scope| triangles(scope, kept.clone()));
                for (_, p) in given[0].iter().enumerate().filter(|(i, _)| mine(*i)) { e.update(*p, 1); }
            }
            other => {
                let inputs = worker.dataflow(|scope| match other {
                    "W1" | "W2" => closure(scope, &counts),
                    "W3" => same_generation(scope, &counts),
                    "W8" => points_to(scope, &counts, variant == "dedup"),
                    _ => pointer_analysis(scope, &counts, variant == "dedup"),
                });
                for (mut input, rows) in inputs.into_iter().zip(given.iter()) {
                    for (_, p) in rows.iter().enumerate().filter(|(i, _)| mine(*i)) { input.update(*p, Present); }
                }
            }
        }
        while worker.step() {}
        let seconds = timer.elapsed().as_secs_f64();
        let mut all = told.lock().unwrap();
        all.0 = all.0.max(seconds);
        if workload == "W7" { *all.1.entry("triangle").or_insert(0) += kept.borrow().len() as u64; }
        for (k, v) in counts.borrow().iter() { *all.1.entry(k).or_insert(0) += v; }
    }).unwrap();
    let all = all.lock().unwrap();
    println!("{{\"eval\": {:.6}, \"load\": {:.6}, \"loaded_mb\": {:.1}, \"peak_mb\": {:.1}, \"answer\": {:?}}}", all.0, load, loaded_mb, io::peak_mb(), all.1);
}
