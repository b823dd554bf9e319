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
