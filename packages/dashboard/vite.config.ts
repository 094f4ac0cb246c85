import { defineConfig } from 'vite'

/** The page is part of the server's package, which shows it. */
export default defineConfig({
  // Read by whoever holds the page, not by who builds it.
  base: './',
  build: { outDir: '../server/dist/page', emptyOutDir: true, modulePreload: { polyfill: false } },
})
