//! Inputs as files of little-endian u32, row after row, read into vectors of exact size; memory of the process.
use std::fs::{self, File};
use std::io::Read;

pub fn rows<const N: usize, T>(path: &str, make: impl Fn([u32; N]) -> T) -> Vec<T> {
    let mut file = File::open(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let count = file.metadata().unwrap().len() as usize / (4 * N);
    let mut out = Vec::with_capacity(count);
    let mut buffer = vec![0u8; 4 * N * 16384];
    let mut left = count * 4 * N;
    while left > 0 {
        let part = left.min(buffer.len());
        file.read_exact(&mut buffer[..part]).unwrap();
        for row in buffer[..part].chunks_exact(4 * N) {
            out.push(make(std::array::from_fn(|i| u32::from_le_bytes([row[4 * i], row[4 * i + 1], row[4 * i + 2], row[4 * i + 3]]))));
        }
        left -= part;
    }
    out
}
pub fn read(path: &str) -> Vec<u32> { rows(path, |[x]: [u32; 1]| x) }
pub fn pairs(path: &str) -> Vec<(u32, u32)> { rows(path, |[x, y]: [u32; 2]| (x, y)) }
#[allow(dead_code)]
pub fn triples(path: &str) -> Vec<(u32, u32, u32)> { rows(path, |[x, y, z]: [u32; 3]| (x, y, z)) }
fn status(key: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
pub fn rss_mb() -> f64 { status("VmRSS:") }
pub fn peak_mb() -> f64 { status("VmHWM:") }
