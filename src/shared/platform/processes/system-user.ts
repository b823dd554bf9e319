import { readFileSync } from 'node:fs';

/** Ids of a user of this machine. */
export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/** Finds a local user by its name; null if there is none. */
export function findSystemUser(name: string): SystemUser | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const fields = line?.split(':');
  return fields ? { uid: Number(fields[2]), gid: Number(fields[3]) } : null;
}
