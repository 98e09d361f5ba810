//! Remote files for tasks of an asynchronous program.

use std::sync::Arc;

use zt::{Dense, Error, File, OpenOptions, Result, Tensor};

use crate::options::RemoteOptions;
use crate::remote::Remote;
use crate::runtime;

/// An open `.zt` file whose values are awaited. It works in any runtime, and a clone is cheap.
///
/// Threads of this crate wait and decode, so a call never blocks the task that awaits it. A call that is
/// dropped runs to its end in the background.
///
/// ```no_run
/// # async fn serve() -> zt::Result<()> {
/// use zt_remote::{AsyncFile, RemoteOptions};
///
/// let file = AsyncFile::open("s3://models/llama/model.zt", &RemoteOptions::new()).await?;
/// let embedding = file.tensor("embed.weight").await?;
/// for layer in file.read_many(["layers.0.weight", "layers.1.weight"]).await? {
///     println!("{:?}", layer?.shape());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AsyncFile(Arc<File>);

impl AsyncFile {
    /// Opens the `.zt` file at `url`.
    ///
    /// # Errors
    ///
    /// As [`crate::open`]; the code of the rule that the file breaks.
    pub async fn open(url: &str, options: &RemoteOptions) -> Result<Self> {
        // The extension that such a file should have.
        let options = options.clone().end_first(["zt"]);
        Self::open_with(url, &options, |remote| OpenOptions::new().open_source(remote)).await
    }

    /// Opens the file at `url` with `open`: for files of other kinds, and for other options.
    ///
    /// # Errors
    ///
    /// As [`crate::open`]; the errors of `open`.
    pub async fn open_with(
        url: &str,
        options: &RemoteOptions,
        open: impl FnOnce(Remote) -> Result<File> + Send + 'static,
    ) -> Result<Self> {
        let (url, options) = (url.to_owned(), options.clone());
        let opened = runtime::blocking(move || open(Remote::open(&url, &options)?)).await?;
        Ok(AsyncFile(Arc::new(opened?)))
    }

    /// The file, for names, shapes and attributes, which are in memory. Calls that read values block.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// The dense value of an object, decoded, and verified if the options of the file demand it.
    ///
    /// # Errors
    ///
    /// As [`File::tensor`] and [`Tensor::to_dense`].
    pub async fn tensor(&self, name: &str) -> Result<Dense<'static>> {
        let (file, name) = (Arc::clone(&self.0), name.to_owned());
        runtime::blocking(move || file.tensor(&name)?.to_dense()).await?
    }

    /// The dense values of several objects, in the order of the names. Their requests are planned
    /// together.
    ///
    /// # Errors
    ///
    /// As [`File::tensor`]. An error in reading a value is in the list, in its place.
    pub async fn read_many(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<Result<Dense<'static>>>> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let file = Arc::clone(&self.0);
        let read = move || {
            let tensors = names.iter().map(|name| file.tensor(name));
            let tensors: Vec<Tensor<'_>> = tensors.collect::<Result<_>>()?;
            Ok::<_, Error>(file.to_dense_many(&tensors))
        };
        runtime::blocking(read).await?
    }
}
