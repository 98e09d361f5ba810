//! Values that an asynchronous program awaits.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is the failure of the test")]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use common::{Server, options};
use zt::{Dense, Writer};
use zt_remote::AsyncFile;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A runtime of one task, which is not tokio.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn values_are_awaited_in_any_runtime() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for (name, value) in [("a", 1.0f32), ("b", 2.0), ("c", 3.0)] {
        writer.add(name, &Dense::from_slice(&[2], &[value, 0.5]).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let server = Server::with("m.zt", bytes);
    block_on(async {
        let file = AsyncFile::open(&server.url("m.zt"), &options()).await.unwrap();
        assert_eq!(file.file().len(), 3);
        let b = file.tensor("b").await.unwrap();
        assert_eq!(*b.as_slice::<f32>().unwrap(), [2.0, 0.5]);
        let many = file.read_many(["c", "a"]).await.unwrap();
        let firsts = many.into_iter().map(|dense| {
            let dense = dense.unwrap();
            dense.as_slice::<f32>().unwrap()[0]
        });
        assert_eq!(firsts.collect::<Vec<_>>(), [3.0, 1.0]);
        assert_eq!(file.tensor("d").await.unwrap_err().code(), "not-found");
        let missing = AsyncFile::open(&server.url("n.zt"), &options()).await;
        assert_eq!(missing.unwrap_err().code(), "io");
    });
}
