import { runCommandLine } from './cli/command-line.ts';

const code = await runCommandLine(process.argv.slice(2));
if (code !== undefined) process.exit(code);
