import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Reads a password: at a terminal asks for it and shows nothing of it, otherwise takes all of standard input. */
export async function readPassword(input: Input = process.stdin, output = process.stderr): Promise<string> {
  if (!input.isTTY) return (await text(input)).replace(/\r?\n$/, '');
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nothing, terminal: true });
  // After the terminal has stopped to echo.
  output.write('New password: ');
  // As without readline, which switches the terminal's own handling off.
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
