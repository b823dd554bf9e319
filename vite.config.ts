import path from 'node:path';
import { defineConfig } from 'vite';

const root = import.meta.dirname;
/** Of the server that `npm run dev:web` takes data and sign-in pages from. */
const server = process.env['HOLDFAST_DEV_SERVER'] ?? 'http://localhost:9090';
const paths = '^/(api|trpc|sign-in|sign-out|account|cli-login|welcome/cli|assets/sign-in\\.(css|js))(/|\\?|$)';

/** Build of the web UI; `scripts/build-web.ts` compresses and places the files. */
export default defineConfig({
  root: path.join(root, 'src', 'web'),
  cacheDir: path.join(root, 'node_modules', '.vite'),
  server: { proxy: { [paths]: { target: server, headers: { origin: server } } } },
  build: {
    target: 'baseline-widely-available',
    emptyOutDir: true,
    // The policy of the page permits no data: URLs.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // For packages.
    license: { fileName: 'licenses.md' },
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // React's directives mean nothing in a bundle for browsers.
      checks: { moduleLevelDirective: false },
      output: {
        // The sign-in page, which knows no hashes, uses the same fonts.
        assetFileNames: ({ names }) =>
          names.some((name) => name.endsWith('.woff2')) ? 'fonts/[name][extname]' : 'assets/[name]-[hash][extname]',
      },
    },
  },
});
