//! TPC-H 1 and 13 by hand, rows in batches, a round each: dd_tpch q1|q13 FOLDER BATCH total|general.
//! What is measured is processor time of one worker, from vectors in memory to the end of the last round. Flags come as a number;
//! comments as slices of one piece of memory, in which bytes are looked for when they come.
#[path = "../../io.rs"]
mod io;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::*;
use differential_dataflow::{Data, VecCollection};
use timely::dataflow::operators::probe::Handle;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

extern "C" {
    fn clock() -> i64;
}
fn seconds() -> f64 {
    unsafe { clock() as f64 / 1e6 }
}

/// The last day of shipping that counts, 1998-09-02, in days since 1970.
const LAST: u32 = 10471;

type Item = (u32, u32, u32, u32, u32, u32);
type Sums = ((isize, isize, isize), (isize, isize, isize));
type Rows = Rc<RefCell<BTreeMap<String, isize>>>;

fn kept<'s, D: Clone + Debug + 'static>(c: VecCollection<'s, u32, D, isize>, rows: &Rows) -> VecCollection<'s, u32, D, isize> {
    let rows = rows.clone();
    c.inspect(move |(row, _, diff)| *rows.borrow_mut().entry(format!("{row:?}")).or_insert(0) += diff)
}

fn feed<D: Data>(
    worker: &mut timely::worker::Worker, input: &mut InputSession<u32, D, isize>, probe: &Handle<u32>, data: Vec<D>, batch: usize,
) -> f64 {
    let start = seconds();
    for chunk in data.chunks(batch) {
        for row in chunk {
            input.insert(row.clone());
        }
        let next = *input.time() + 1;
        input.advance_to(next);
        input.flush();
        while probe.less_than(&next) {
            worker.step();
        }
    }
    seconds() - start
}

fn sums(item: &Item) -> Sums {
    let (quantity, price, off, tax) = (item.1 as isize, item.2 as isize, item.3 as isize, item.4 as isize);
    ((1, quantity, price), (price * (100 - off), price * (100 - off) * (100 + tax), off))
}

fn place(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// `%special%requests%`.
fn special(comment: &[u8]) -> bool {
    place(comment, b"special").is_some_and(|at| place(&comment[at + 7..], b"requests").is_some())
}

/// Customers with their comments, of which the file has the lengths, and another one the bytes.
fn orders(folder: &str) -> Vec<(u32, &'static [u8])> {
    let bytes: &'static [u8] = std::fs::read(format!("{folder}/comments")).unwrap().leak();
    let mut at = 0;
    let rows = io::pairs(&format!("{folder}/q13.u32"));
    rows.into_iter().map(|(customer, length)| {
        let start = at;
        at += length as usize;
        (customer, &bytes[start..at])
    }).collect()
}

fn there(rows: &Rows) -> String {
    let found: Vec<String> = rows.borrow().iter().filter(|(_, n)| **n != 0).map(|(row, n)| format!("[{row:?}, {n}]")).collect();
    found.join(", ")
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (query, folder, batch, general) = (args[1].clone(), args[2].clone(), args[3].parse::<usize>().unwrap(), args[4] == "general");
    let (taken, rows) = timely::execute_directly(move |worker| {
        let seen: Rows = Default::default();
        let mut probe = Handle::new();
        if query == "q1" {
            let mut input = worker.dataflow(|scope| {
                let (input, items) = scope.new_collection::<Item, isize>();
                let weighted = items.filter(|i| i.5 <= LAST).explode(|i| Some((i.0, sums(&i))));
                let found = if general { weighted.count() } else { weighted.count_total() };
                kept(found, &seen).probe_with(&mut probe);
                input
            });
            let taken = feed(worker, &mut input, &probe, io::rows(&format!("{folder}/q1.u32"), |[a, b, c, d, e, f]: [u32; 6]| (a, b, c, d, e, f)), batch);
            return (taken, there(&seen));
        }
        let made = orders(&folder);
        let (mut customers, mut orders) = worker.dataflow(|scope| {
            let (customers, customer) = scope.new_collection::<u32, isize>();
            let (orders, order) = scope.new_collection::<(u32, &'static [u8]), isize>();
            let each = order.filter(|o| !special(o.1)).map(|o| o.0).concat(customer);
            let found = if general {
                each.count().map(|(_, n)| n - 1).count()
            } else {
                each.count_total().map(|(_, n)| n - 1).count_total()
            };
            kept(found, &seen).probe_with(&mut probe);
            (customers, orders)
        });
        for customer in io::read(&format!("{folder}/customers.u32")) {
            customers.insert(customer);
        }
        customers.close();
        let taken = feed(worker, &mut orders, &probe, made, batch);
        (taken, there(&seen))
    });
    println!("{{\"seconds\": {taken}, \"rows\": [{rows}]}}");
}
