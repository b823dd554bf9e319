import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Prompts at a terminal without echo; otherwise reads all of standard input. */
export async function readPassword(input: Input = process.stdin, output = process.stderr): Promise<string> {
  if (!input.isTTY) return (await text(input)).replace(/\r?\n$/, '');
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nothing, terminal: true });
  // Printed after the terminal has stopped echoing.
  output.write('New password: ');
  // The default behavior, which readline disables in the terminal.
  lines.once('SIGINT', () => {
    lines.close();
    process.kill(process.pid, 'SIGINT');
  });
  const password = await new Promise<string>((resolve) => {
    lines.once('line', resolve);
    lines.once('close', () => resolve(''));
  });
  lines.close();
  output.write('\n');
  return password;
}
