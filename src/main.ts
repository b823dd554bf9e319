import { runCommandLine } from './cli/command-line.ts';

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
