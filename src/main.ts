import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';

// Of a host with several addresses, Node gives up each one before the last after 250 ms, and fails if the last one is IPv6 on a machine
// without it. A lost packet is repeated after a second; the shortest limit of a connection, that of S3, is 3 s.
setDefaultAutoSelectFamilyAttemptTimeout(2_000);

// Node handles no signal by itself in the first process of a container, and an embedded Postgres ends on `exit`.
for (const [signal, code] of [
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => {
    // Commands with handlers end by themselves.
    if (process.listenerCount(signal) === 1) process.exit(code);
  });

const { runCommandLine } = await import('./cli/command-line.ts');
const code = await runCommandLine(process.argv.slice(2));
if (code !== undefined) {
  await Promise.all([process.stdout, process.stderr].map(untilWritten));
  process.exit(code);
}

/** Waits until a pipe has taken all output, which `exit` would discard, or its reader has closed it. */
async function untilWritten(out: NodeJS.WriteStream): Promise<void> {
  if (out.writableLength === 0) return;
  out.on('error', () => {});
  await new Promise<void>((resolve) => void out.write('', () => resolve()));
}
