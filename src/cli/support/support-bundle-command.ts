import type { Command } from 'commander';
import { replaceFileDurably } from '../../shared/platform/files/durable-files.ts';
import type { CommandRun } from '../command-run.ts';
import { collectSupportBundle } from './support-bundle.ts';

export function addSupportBundleOptions(command: Command, run: CommandRun): void {
  command
    .argument('<file>', 'the file to write, in JSON')
    .option('--log <file>', 'add the last lines of this log file')
    .addHelpText(
      'after',
      `
The file has no states and no tokens, passwords or keys. Read it before you give it to somebody: it has names of hosts, stacks and users.`,
    )
    .action(async (file: string, { log = null }: { log?: string | null }) => {
      const bundle = await collectSupportBundle(() => run.loadConfig(), { logFile: log });
      replaceFileDurably(file, `${JSON.stringify(bundle, null, 2)}\n`, { mode: 0o600 });
      console.log(`Wrote ${file}. Read it before you give it to somebody.`);
    });
}
