import { readFileSync } from 'node:fs';

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
  /** The ids of its other groups. */
  readonly groups: readonly number[];
}

export function findSystemUser(name: string): SystemUser | null {
  const fields = readEntries('/etc/passwd').find(([entry]) => entry === name);
  if (!fields) return null;
  const groups = readEntries('/etc/group').filter(([, , , members]) => members?.split(',').includes(name));
  return { uid: Number(fields[2]), gid: Number(fields[3]), groups: groups.map(([, , gid]) => Number(gid)) };
}

function readEntries(file: string): string[][] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.map((line) => line.split(':'));
}
