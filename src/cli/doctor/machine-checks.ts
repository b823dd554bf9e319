import { spawnSync } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, open, readFile, rm, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Config } from '../../shared/platform/config/config.ts';
import { masterKeysFile } from '../../shared/platform/config/data-dir.ts';
import { listExposures } from '../../shared/platform/config/exposure.ts';
import { pathWarnings } from '../../shared/platform/config/url-problems.ts';
import { tmpfs } from '../../shared/platform/files/temporary-folder.ts';
import { leftOf } from './certificate-days.ts';
import { type Check, fail, type Outcome, ok, warn } from './check.ts';

/** The oldest version that supports HOLDFAST_CA_FILE. */
const neededNode = [24, 5] as const;
const warnFreeBytes = 1024 ** 3;
const failFreeBytes = 64 * 1024 ** 2;

/** Checks that need no other process. */
export function machineChecks(config: Config): Check[] {
  const checks: Check[] = [
    { name: 'settings', run: async () => checkSettings(config) },
    { name: 'node', run: async () => checkNode() },
  ];
  const { front, dataDir } = config;
  if (front.tls !== null) {
    const files = front.tls;
    checks.push({ name: 'tls-files', run: () => checkTlsFiles(files) });
  }
  // A process of a cluster has no files there, and a worker has no master keys.
  const hasKeys =
    config.secrets.masterKeys === null && (config.redisUrl === null || existsSync(masterKeysFile(dataDir)));
  const isUsed = config.database.url === null || config.blobs.kind === 'files' || hasKeys;
  if (isUsed)
    checks.push(
      { name: 'data-directory', run: () => checkDataDirectory(dataDir) },
      { name: 'disk', run: () => checkDisk(dataDir) },
    );
  return checks;
}

function checkSettings(config: Config): Outcome {
  const [warning] = [...listExposures(config), ...pathWarnings(config)];
  if (warning === undefined) return ok('The settings are valid.');
  const [seen = '', fix] = warning.split('; ');
  return warn(`${seen}.`, fix ? `To fix it, ${fix}.` : 'Keep others from reaching it.');
}

function checkNode(): Outcome {
  const { node } = process.versions;
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major < neededNode[0] || (major === neededNode[0] && minor < neededNode[1])
    ? fail(`This is Node ${node}.`, `Use Node ${neededNode.join('.')} or later.`)
    : ok(`Node ${node}.`);
}

async function checkTlsFiles({ certFile, keyFile }: { certFile: string; keyFile: string }): Promise<Outcome> {
  const fix = 'Name a valid pair that the server can read in HOLDFAST_TLS_CERT_FILE and HOLDFAST_TLS_KEY_FILE.';
  try {
    const [cert, key] = [await readFile(certFile, 'utf8'), await readFile(keyFile, 'utf8')];
    createSecureContext({ cert, key });
    return leftOf(new Date(new X509Certificate(cert).validTo), `The certificate in ${certFile}`);
  } catch (error) {
    return fail(`The certificate cannot be used: ${(error as Error).message}`, fix);
  }
}

async function checkDataDirectory(directory: string): Promise<Outcome> {
  const found = await stat(directory).catch(({ code }: NodeJS.ErrnoException) => ({ code }));
  if ('code' in found)
    return found.code === 'ENOENT'
      ? warn(`${directory} does not exist.`, 'Check HOLDFAST_DATA_DIR; the first start creates the directory.')
      : fail(
          `${directory} cannot be used: ${found.code}`,
          'Name a directory that the server can use in HOLDFAST_DATA_DIR.',
        );
  if (!found.isDirectory()) return fail(`${directory} is a file.`, 'Name a directory in HOLDFAST_DATA_DIR.');
  if (!(await mayWrite(directory, found)))
    return fail(
      `${directory} cannot be written.`,
      'Make the user that runs the server the owner of the directory, with write permission.',
    );
  if ((found.mode & 0o022) !== 0)
    return warn(`${directory} can be written by other users.`, `\`chmod go-w ${directory}\` prevents that.`);
  for (const file of [
    masterKeysFile(directory),
    path.join(directory, 'first-token'),
    path.join(directory, 'postgres', 'password'),
  ]) {
    const secret = await stat(file).catch(() => null);
    if (secret && (secret.mode & 0o077) !== 0)
      return warn(`${file} can be read by other users.`, `\`chmod 600 ${file}\` prevents that.`);
  }
  return ok(`Other users can neither write to ${directory} nor read its secrets.`);
}

/** If this process is root, checks the access of the owner, because the server runs as that user. */
async function mayWrite(
  directory: string,
  { gid, uid }: { readonly gid: number; readonly uid: number },
): Promise<boolean> {
  if (process.geteuid?.() === 0 && uid !== 0) return spawnSync('test', ['-w', directory], { uid, gid }).status === 0;
  return access(directory, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function checkDisk(directory: string): Promise<Outcome> {
  const found = await statfs(directory).catch(() => null);
  if (found === null) return null;
  const free = found.bavail * found.bsize;
  const seen = `${(free / 1024 ** 3).toFixed(1)} GiB are free at ${directory}.`;
  if (free < failFreeBytes) return fail(seen, 'Make space there.');
  const probe = path.join(directory, `.doctor-${randomBytes(6).toString('hex')}`);
  try {
    const file = await open(probe, 'wx', 0o600);
    try {
      await file.write(randomBytes(4_096));
      await file.sync();
    } finally {
      await file.close();
      await rm(probe, { force: true });
    }
  } catch (error) {
    return fail(
      `A file at ${directory} cannot be synced: ${(error as Error).message}`,
      'Use a writable volume that keeps what fsync wrote.',
    );
  }
  if (found.type === tmpfs)
    return warn(`${directory} is in memory (tmpfs).`, 'Put the directory on a disk: otherwise, a restart loses it.');
  return free < warnFreeBytes ? warn(seen, 'Make space there.') : ok(seen);
}
