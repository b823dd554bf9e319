import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { findFreePort } from '../../testkit/server-process.ts';
import type { MachineCopy } from './machine-copy.ts';
import { until } from './until.ts';

/** For a server that is not ours to configure in other ways. */
export interface ServiceAddresses {
  readonly url: string;
  readonly listen: string;
  readonly managementListen: string;
}

/** Finds free addresses. */
export async function findAddresses(): Promise<ServiceAddresses> {
  const [port, other] = [await findFreePort(), await findFreePort()];
  return { url: `http://127.0.0.1:${port}`, listen: `127.0.0.1:${port}`, managementListen: `127.0.0.1:${other}` };
}

/** A server as a process of its package. */
export class InstalledService implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  #output = '';

  constructor(child: ChildProcess, url: string) {
    this.url = url;
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
  }

  /** Its output so far. */
  get log(): string {
    return this.#output;
  }

  /** Waits until it is healthy. Throws when it ends. */
  async untilHealthy(): Promise<void> {
    const isHealthy = async (): Promise<boolean> => {
      if (this.#hasEnded) throw new Error(`it ended:\n${this.#output}`);
      return fetch(`${this.url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
    };
    await until(isHealthy, 'the server is healthy');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasEnded) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/** Starts the command of the installed unit as its user, in its directory, and with its environment, as systemd does. */
export async function startUnit(machine: MachineCopy, url: string): Promise<InstalledService> {
  const unit = await machine.runOk('cat', '/usr/lib/systemd/system/holdfast.service');
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
  const [user, group] = [value('User'), value('Group')];
  for (const each of [`/var/lib/${value('StateDirectory')}`, `/var/cache/${value('CacheDirectory')}`])
    await machine.runOk('install', '-d', '-m', '0700', '-o', user, '-g', group, each);
  const ids = [`--reuid=${user}`, `--regid=${group}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all'];
  const env = ['-i', `--chdir=${value('WorkingDirectory')}`, 'PATH=/usr/bin:/bin', `USER=${user}`];
  const words = [...env, ...value('Environment').split(' '), ...value('ExecStart').split(' ')];
  return new InstalledService(machine.spawn('setpriv', ...ids, 'env', ...words), url);
}

/** Another version, and nothing else. */
export async function makeNewer(deb: string, [from, to]: readonly [string, string], target: string): Promise<void> {
  const script = `
    set -e
    dpkg-deb --raw-extract "$1" "$2.tree"
    sed -i "s/$3/$4/" "$2.tree/DEBIAN/control" "$2.tree/usr/lib/holdfast/package.json"
    dpkg-deb --root-owner-group -Znone --build "$2.tree" "$2"
    rm -r "$2.tree"`;
  await promisify(execFile)('sh', ['-c', script, 'sh', deb, target, from, to]);
}
