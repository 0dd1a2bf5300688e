//! Programs over edges that come and go: dd_rounds PROGRAM FOLDER ROOT PHASES [timely's arguments].
//! FOLDER has first.u32, the edges to begin with, and changes.i32, rows of round, diff, x, y, whose rounds count up from 0. PHASES
//! as `1x500,1000x20` go over the one stream in turn: 500 calls of one round, then 20 of 1,000. Each round is a time of its own; a
//! call ends when all its rounds are complete. The net changes of the output are looked at one by one.
#[path = "../../io.rs"]
mod io;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use differential_dataflow::algorithms::graphs::propagate::propagate_core;
use differential_dataflow::input::Input;
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::operators::*;
use differential_dataflow::trace::implementations::{KeyBuilder, KeySpine, ValBuilder, ValSpine};
use differential_dataflow::VecCollection;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Pair = (u32, u32);
type Diff = i32;
type Rows<'s, D> = VecCollection<'s, u32, D, Diff>;

/// What goes round are proposals, so that the arrangement which `reduce` makes serves the join, too.
fn bfs<'s>(edges: Rows<'s, Pair>, roots: Rows<'s, u32>) -> Rows<'s, Pair> {
    let outer = roots.scope();
    let edges = edges.arrange_by_key();
    outer.iterative::<u32, _, _>(|inner| {
        let (var, proposals) = Variable::new(inner, Product::new(0, 1));
        let labels = proposals
            .concat(roots.map(|x| (x, 0)).enter(inner))
            .reduce_abelian::<_, ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>>("Min", |_, s, t| t.push((*s[0].0, 1)));
        var.set(labels.clone().join_core(edges.enter(inner), |_, &l, &d| Some((d, l + 1))));
        labels.as_collection(|k, v| (*k, *v)).leave(outer)
    })
}

fn reach<'s>(edges: Rows<'s, Pair>, roots: Rows<'s, u32>) -> Rows<'s, Pair> {
    let outer = roots.scope();
    let edges = edges.arrange_by_key();
    outer.iterative::<u32, _, _>(|inner| {
        let (var, proposals) = Variable::new(inner, Product::new(0, 1));
        let reached = proposals
            .concat(roots.enter(inner))
            .map(|x| (x, ()))
            .reduce_abelian::<_, KeyBuilder<_, _, _>, KeySpine<_, _, _>>("Distinct", |_, _, t| t.push(((), 1)));
        var.set(reached.clone().join_core(edges.enter(inner), |_, &(), &d| Some(d)));
        reached.as_collection(|k, _| (*k, 0)).leave(outer)
    })
}

fn components<'s>(edges: Rows<'s, Pair>, nodes: Rows<'s, u32>) -> Rows<'s, Pair> {
    let both = edges.flat_map(|(x, y)| [(x, y), (y, x)]).arrange_by_key();
    propagate_core(both, nodes.map(|x| (x, x)), |l| *l as u64)
}

/// Edges are a multiset here, whose copies count; no stream has any.
fn degrees<'s>(edges: Rows<'s, Pair>) -> Rows<'s, Pair> {
    let each = edges.map(|(x, _)| x).count_total_core::<Diff>();
    each.map(|(_, n)| n as u32).count_total_core::<Diff>().map(|(n, nodes)| (n, nodes as u32))
}

fn code(x: u32, y: u32) -> u64 {
    let (x, y) = (x as u64, y as u64);
    let mixed = x.wrapping_mul(y).wrapping_mul(0x165667B19E3779F9);
    x.wrapping_mul(0x9E3779B97F4A7C15).wrapping_add(y.wrapping_mul(0xC2B2AE3D27D4EB4F)).wrapping_add(mixed)
}

#[derive(Default)]
struct Found {
    load: f64,
    calls: Vec<Vec<u64>>,
    rows: i64,
    check: u64,
    changes: u64,
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (program, folder, root) = (a[1].clone(), a[2].clone(), a[3].parse::<u32>().unwrap());
    let phase = |p: &str| p.split_once('x').map(|(k, n)| (k.parse().unwrap(), n.parse().unwrap())).unwrap();
    let phases: Vec<(u32, u32)> = a[4].split(',').map(phase).collect();
    let rest = std::iter::once("dd".to_string()).chain(a[5..].iter().cloned());
    let first = Arc::new(io::pairs(&format!("{folder}/first.u32")));
    let changes: Arc<Vec<[u32; 4]>> = Arc::new(io::rows(&format!("{folder}/changes.i32"), |row: [u32; 4]| row));
    let all: Arc<Mutex<Found>> = Arc::default();
    let found = all.clone();
    timely::execute_from_args(rest, move |worker| {
        let (index, peers) = (worker.index(), worker.peers());
        let mut probe = Handle::new();
        let (rows, check, seen) = (Rc::new(Cell::new(0i64)), Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
        let (r, c, s) = (rows.clone(), check.clone(), seen.clone());
        let start = Instant::now();
        let (mut edges, mut roots) = worker.dataflow(|scope| {
            let (edge_input, edges) = scope.new_collection::<Pair, Diff>();
            let (root_input, roots) = scope.new_collection::<u32, Diff>();
            let result = match program.as_str() {
                "bfs" => bfs(edges, roots).consolidate(),
                "reach" => reach(edges, roots).consolidate(),
                "components" => components(edges, roots).consolidate(),
                "degrees" => degrees(edges),
                _ => panic!("unknown program"),
            };
            let look = move |batch: &[(Pair, u32, Diff)]| {
                s.set(s.get() + batch.len() as u64);
                for ((x, y), _, d) in batch.iter() {
                    r.set(r.get() + *d as i64);
                    c.set(c.get().wrapping_add(code(*x, *y).wrapping_mul(*d as i64 as u64)));
                }
            };
            result.inspect_batch(move |_, batch| look(batch)).probe_with(&mut probe);
            (edge_input, root_input)
        });
        if program == "components" {
            for x in (0..root).filter(|x| *x as usize % peers == index) {
                roots.update(x, 1);
            }
        } else if index == 0 {
            roots.update(root, 1);
        }
        roots.close();
        for (_, pair) in first.iter().enumerate().filter(|(i, _)| i % peers == index) {
            edges.update(*pair, 1);
        }
        edges.advance_to(1);
        edges.flush();
        worker.step_while(|| probe.less_than(edges.time()));
        let (load, at_load) = (start.elapsed().as_secs_f64(), seen.get());
        let (mut at, mut time, mut calls) = (0usize, 1u32, Vec::new());
        for &(per_call, count) in phases.iter() {
            let mut nanos = Vec::with_capacity(count as usize);
            for _ in 0..count {
                let start = Instant::now();
                time += per_call;
                while at < changes.len() && changes[at][0] + 1 < time {
                    let [round, diff, x, y] = changes[at];
                    if at % peers == index {
                        edges.update_at((x, y), round + 1, diff as i32);
                    }
                    at += 1;
                }
                edges.advance_to(time);
                edges.flush();
                worker.step_while(|| probe.less_than(edges.time()));
                nanos.push(start.elapsed().as_nanos() as u64);
            }
            calls.push(nanos);
        }
        let mut all = found.lock().unwrap();
        if index == 0 {
            all.load = load;
            all.calls = calls;
        }
        all.rows += rows.get();
        all.check = all.check.wrapping_add(check.get());
        all.changes += seen.get() - at_load;
    })
    .unwrap();
    let all = all.lock().unwrap();
    println!(
        "{{\"load\": {:.6}, \"calls\": {:?}, \"rows\": {}, \"check\": {}, \"changes\": {}}}",
        all.load, all.calls, all.rows, all.check, all.changes
    );
}
