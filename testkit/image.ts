import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

// Creates the files of an image from its Dockerfile without a container engine, and runs its programs in them.

const checkout = path.join(import.meta.dirname, '..');
/** Ids of users in the official images of Node, by name. */
const userIds: Readonly<Record<string, number>> = { node: 1000 };
const imagePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

interface Step {
  readonly word: string;
  readonly text: string;
}

interface Stage {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** With the settings of the last stage's programs. */
export interface Image {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly userId: number;
  readonly workdir: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

/** Returns the stages of a Dockerfile in their order. */
export function parseDockerfile(text: string): Stage[] {
  const stages: { name: string; steps: Step[] }[] = [];
  for (const line of text.replaceAll('\\\n', ' ').split('\n')) {
    const [, word = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (word === 'FROM') stages.push({ name: / AS (\w+)$/.exec(rest)?.[1] ?? 'last', steps: [] });
    else if (word !== '') stages.at(-1)?.steps.push({ word, text: rest.trim() });
  }
  return stages;
}

/**
 * Below `home`, from the Dockerfile's last stage. Runs the commands of its stages here, except that the packages of `npm ci` and the web UI
 * are taken from this checkout: both have the same sources.
 */
export function makeImage(home: string): Image {
  const stages = parseDockerfile(readFileSync(path.join(checkout, 'Dockerfile'), 'utf8'));
  const last = stages.at(-1) as Stage;
  const needed = new Set(last.steps.flatMap(({ word, text }) => (word === 'COPY' ? [copyOf(text).from] : [])));
  for (const stage of stages) if (needed.has(stage.name)) makeStage(home, stage);
  makeStage(home, last);
  const lastOf = (word: string): string => last.steps.findLast((step) => step.word === word)?.text ?? '';
  const listOf = (word: string): string[] => JSON.parse(/\[.*\]$/.exec(lastOf(word))?.[0] ?? '[]') as string[];
  const assignments = last.steps.flatMap(({ word, text }) => (word === 'ENV' ? text.split(/\s+/) : []));
  return {
    root: path.join(home, last.name),
    env: { PATH: imagePath, ...Object.fromEntries(assignments.map((each) => each.split('=', 2) as [string, string])) },
    userId: userIds[lastOf('USER')] as number,
    workdir: lastOf('WORKDIR'),
    entrypoint: listOf('ENTRYPOINT'),
    command: listOf('CMD'),
    healthCheck: listOf('HEALTHCHECK'),
  };
}

function makeStage(home: string, { name, steps }: Stage): void {
  const root = path.join(home, name);
  mkdirSync(root, { recursive: true, mode: 0o755 });
  let workdir = '/';
  for (const { word, text } of steps) {
    if (word === 'WORKDIR') {
      workdir = path.posix.join(workdir, text);
      mkdirSync(path.join(root, workdir), { recursive: true });
    } else if (word === 'COPY') copy(home, root, workdir, text);
    else if (word === 'RUN') runIn(path.join(root, workdir), text);
  }
}

function copyOf(text: string): { from: string | null; owner: string | null; sources: string[]; target: string } {
  const words = text.split(/\s+/);
  const flag = (name: string): string | null =>
    words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? null;
  const paths = words.filter((word) => !word.startsWith('--'));
  return { from: flag('from'), owner: flag('chown'), sources: paths.slice(0, -1), target: paths.at(-1) as string };
}

function copy(home: string, root: string, workdir: string, text: string): void {
  const { from, owner, sources, target } = copyOf(text);
  const to = path.join(root, path.posix.resolve(workdir, target));
  for (const source of sources) {
    const file = from === null ? path.join(checkout, source) : path.join(home, from, source);
    const isFolder = statSync(file).isDirectory();
    const place = isFolder || !target.endsWith('/') ? to : path.join(to, path.basename(source));
    const isWanted = (name: string): boolean => from !== null || !isIgnored(path.relative(checkout, name));
    if (!isFolder && !isWanted(file)) throw new Error(`COPY ${text}: .dockerignore leaves out ${source}`);
    mkdirSync(isFolder ? place : path.dirname(place), { recursive: true });
    if (from === null) cpSync(file, place, { recursive: true, verbatimSymlinks: true, filter: isWanted });
    else linkFiles(isFolder ? `${file}/.` : file, place);
    if (owner !== null && process.getuid?.() === 0)
      execFileSync('chown', ['-R', String(userIds[owner.split(':')[0] as string]), place]);
  }
}

/** Links are fast within one file system: no file of an image changes later. */
function linkFiles(from: string, to: string): void {
  const { status } = spawnSync('cp', ['-a', '--link', from, to]);
  if (status !== 0) execFileSync('cp', ['-a', from, to]);
}

const ignoreRules = readFileSync(path.join(checkout, '.dockerignore'), 'utf8').split('\n').filter(Boolean);

/** The file is not sent to the builder. The last rule that matches it or a parent folder decides. */
function isIgnored(file: string): boolean {
  const parts = file.split(path.sep);
  const places = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  const rule = ignoreRules.findLast((each) => places.some((place) => path.matchesGlob(place, each.replace(/^!/, ''))));
  return rule !== undefined && !rule.startsWith('!');
}

function runIn(folder: string, line: string): void {
  const [, omitting, rest = ''] = /^npm ci( --omit=dev --omit=optional)?(?:\s+&& (.*))?$/.exec(line) ?? [];
  const isInstallation = line.startsWith('npm ci');
  if (isInstallation && omitting === undefined)
    symlinkSync(path.join(checkout, 'node_modules'), path.join(folder, 'node_modules'));
  else if (isInstallation) linkPackages(folder);
  const command = isInstallation ? rest : line;
  if (command === '') return;
  const web = path.join(checkout, 'dist', 'web');
  // The command builds the web UI only if it is older than its sources.
  if (command.includes('build-web.ts --if-stale') && existsSync(web))
    cpSync(web, path.join(folder, 'dist', 'web'), { recursive: true });
  const env = { ...process.env, PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`, NODE_OPTIONS: '' };
  execFileSync('sh', ['-c', command], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });
}

/** Those not marked as development or optional in the lock file. */
function linkPackages(folder: string): void {
  const { packages } = JSON.parse(readFileSync(path.join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; optional?: true; devOptional?: true }>;
  };
  const isOmitted = (place: string): boolean => {
    const { dev, optional, devOptional } = packages[place] ?? {};
    return (dev ?? optional ?? devOptional) === true;
  };
  // Outer packages first, each without the packages inside it.
  for (const place of Object.keys(packages).filter((name) => name !== '' && !isOmitted(name))) {
    const target = path.join(folder, place);
    mkdirSync(path.dirname(target), { recursive: true });
    linkFiles(path.join(checkout, place), target);
    rmSync(path.join(target, 'node_modules'), { recursive: true, force: true });
  }
}

/**
 * Adds the few files of the base image that Node needs: the program, its libraries, and the list of users. There is no
 * shell and no other program.
 */
export function addNode({ root, userId }: Image): void {
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g);
  for (const [, file = ''] of libraries) {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
    copyFileSync(file, path.join(root, file));
  }
  copyFileSync(process.execPath, path.join(root, 'usr/local/bin/node'));
  for (const folder of ['dev', 'etc', 'proc', 'tmp']) mkdirSync(path.join(root, folder), { recursive: true });
  writeFileSync(path.join(root, 'etc/passwd'), `node:x:${userId}:${userId}::/home/node:/bin/sh\n`);
}

/** Arguments: root, user id, working directory, command. The first process of the container becomes the command itself. */
const enter = `
root=$1 user=$2 workdir=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$root/data" "$root/data"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec unshare --root="$root" --wd="$workdir" --setgid="$user" --setuid="$user" "$@"`;

/**
 * Runs a command like the first process of a container: with the image's files, read-only except for /data and /tmp, as its user, in a
 * separate process namespace. Needs Linux and root.
 */
export function runInImage(
  image: Image,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): ChildProcess {
  return spawn(
    '/usr/bin/unshare',
    [
      ...['--mount', '--pid', '--fork', '--kill-child', 'sh', '-euc', enter, 'sh'],
      ...[image.root, String(image.userId), image.workdir, ...command],
    ],
    { env: { ...image.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
}

/** Sends a signal to the first process of the container. */
export function signalContainer(child: ChildProcess, signal: NodeJS.Signals): void {
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
  process.kill(Number(children.split(' ')[0]), signal);
}
