// After the first visit the page works without a network. `build.mjs` writes the first two lines: VERSION and FILES.
// Other sites of the same origin have caches of their own.
const ours = `zt ${registration.scope} `;
const cacheOf = ours + VERSION;

// All files of one version, and none that the browser has kept of another.
addEventListener("install", (event) => {
  const fresh = FILES.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(cacheOf).then((cache) => cache.addAll(fresh)));
});

// No page is open that uses an older version.
addEventListener("activate", (event) => {
  const drop = (names) => Promise.all(names.filter((name) => name.startsWith(ours) && name !== cacheOf).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(drop));
});

// Files of models are nobody's to keep.
addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  url.search = url.hash = "";
  const isOurs = FILES.some((file) => url.href === new URL(file, registration.scope).href);
  if (!isOurs || event.request.method !== "GET") return;
  const kept = caches.open(cacheOf).then((cache) => cache.match(url.href));
  event.respondWith(kept.then((found) => found ?? fetch(event.request)));
});
