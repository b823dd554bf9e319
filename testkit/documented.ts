import { readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..');

/** A block of shell commands in a document. */
export interface ShellBlock {
  readonly document: string;
  readonly firstLine: string;
  readonly text: string;
  /** From "```sh not-run: REASON"; null if a test must run the block. */
  readonly notRun: string | null;
}

export function shellBlocks(document: string): ShellBlock[] {
  const text = readFileSync(path.join(root, document), 'utf8');
  return [...text.matchAll(/^ *```(?:sh|bash|shell|console)(.*)\n([\s\S]*?)^ *```$/gm)].map(
    ([, info = '', commands = '']) => ({
      document,
      firstLine: commands.split('\n', 1)[0] as string,
      text: commands,
      notRun: /^ not-run: (\S.*)$/.exec(info)?.[1] ?? null,
    }),
  );
}

/**
 * Returns the block of a document that begins with this line, for the test that runs it. Both arguments must be literals:
 * documented-commands.test.ts looks for the calls.
 */
export function documentedBlock(document: string, firstLine: string): string {
  const found = shellBlocks(document).filter((block) => block.firstLine === firstLine);
  if (found.length !== 1) throw new Error(`${document} has ${found.length} blocks that begin with: ${firstLine}`);
  return (found[0] as ShellBlock).text;
}
