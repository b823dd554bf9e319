import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from './pulumi-state.ts';
import { hasErrorCode } from './toolchain/error-code.ts';
import { acquireLock } from './toolchain/tool-cache.ts';

/** A state recorded by a scenario. */
export interface KeptState {
  label: string;
  state: Json;
}

interface Recorded {
  project: string;
  kept: readonly KeptState[];
}

/**
 * Returns the result of `record` for a project of that name, but calls it only once in a run of the tests for equal `inputs`: many
 * scenarios run on several servers, and the file backend gives the same states each time. Later callers wait for the first one. If
 * jest.config.ts has not named a directory, each caller records for itself.
 */
export async function referenceStates(
  inputs: readonly unknown[],
  project: string,
  record: () => Promise<readonly KeptState[]>,
): Promise<readonly KeptState[]> {
  const directory = process.env['HOLDFAST_TEST_REFERENCES'];
  if (directory === undefined) return record();
  await mkdir(directory, { recursive: true });
  const file = join(directory, createHash('sha256').update(JSON.stringify(inputs)).digest('hex'));
  const release = await acquireLock(`${file}.lock`, 'waiting for a scenario on the file backend');
  try {
    const found = await read(file);
    // URNs contain the name of the project.
    if (found) return JSON.parse(JSON.stringify(found.kept).replaceAll(found.project, project)) as KeptState[];
    const kept = await record();
    await writeFile(`${file}.part`, JSON.stringify({ project, kept } satisfies Recorded));
    await rename(`${file}.part`, file);
    return kept;
  } finally {
    await release();
  }
}

async function read(file: string): Promise<Recorded | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Recorded;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}
