import type { Command } from 'commander';
import type { CommandRun } from '../command-run.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import type { Finding } from './check.ts';
import { runDoctor } from './run-doctor.ts';

const marks = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' } as const;

export function addDoctorOptions(command: Command, run: CommandRun): void {
  command.option(...jsonOption).action(async ({ json }: { json?: true }) => {
    const findings = await runDoctor(() => run.loadConfig());
    printResult('doctor', { findings }, { json, text: linesOf(findings).join('\n') });
    if (findings.some(({ status }) => status === 'fail')) run.exitCode = 1;
  });
}

function linesOf(findings: readonly Finding[]): string[] {
  const width = Math.max(...findings.map(({ name }) => name.length));
  return findings.flatMap(({ fix, name, seen, status }) => [
    `${marks[status]}  ${name.padEnd(width)}  ${seen}`,
    ...(fix === null ? [] : [`      ${' '.repeat(width)}  → ${fix}`]),
  ]);
}
