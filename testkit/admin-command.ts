import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { holdfastProgram } from './holdfast-program.ts';
import type { OwnHoldfastServer } from './holdfast-server.ts';

/** Runs `holdfast admin` on the data of a server, and returns what it printed. Throws if it fails. */
export async function runAdmin(server: Pick<OwnHoldfastServer, 'dataDir'>, ...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOLDFAST_DATA_DIR: server.dataDir };
  return (await promisify(execFile)(process.execPath, [holdfastProgram, 'admin', ...args], { env })).stdout;
}
