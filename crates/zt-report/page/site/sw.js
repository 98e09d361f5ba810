// After the first visit the page works without a network. `build.mjs` writes the first line.
const cacheOf = `zt-${VERSION}`;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(cacheOf).then((cache) => cache.addAll(FILES)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const drop = (names) => Promise.all(names.filter((name) => name.startsWith("zt-") && name !== cacheOf).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(drop).then(() => clients.claim()));
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
