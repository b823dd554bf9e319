import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

// `npm run pin-images`: asks the registry which bytes the tags of our container images mean now, and writes their digests behind
// the tags. `--check` only says which have none; `--root` and `--registry` are for tests and for mirrors.

const { values } = parseArgs({
  options: { check: { type: 'boolean' }, root: { type: 'string' }, registry: { type: 'string' } },
});
const root = path.resolve(values.root ?? path.join(import.meta.dirname, '..'));

const files = ['Dockerfile', 'deploy/s3/Dockerfile', 'docker-compose.yml'];
/** `# syntax=…`, `FROM …` and `image: …`, each with a name, a tag and perhaps a digest. Our own images have a variable as tag. */
const reference =
  /^(# syntax=|FROM (?:--\S+ )?| +image: )((?:[a-z0-9.-]+(?::\d+)?\/)*[a-z0-9._-]+):([\w.-]+)(@sha256:[0-9a-f]{64})?(?=\s|$)/gm;
const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** The registry and the repository of an image name, as Docker reads it. */
function placeOf(name: string): { registry: string; repository: string } {
  const [first = '', ...rest] = name.split('/');
  if (rest.length > 0 && /[.:]/.test(first))
    return { registry: values.registry ?? `https://${first}`, repository: rest.join('/') };
  const repository = rest.length === 0 ? `library/${name}` : name;
  return { registry: values.registry ?? 'https://registry-1.docker.io', repository };
}

/** Asks as nobody in particular, with the token that the registry wants for that. */
async function ask(url: string): Promise<Response> {
  const headers = { Accept: manifestTypes };
  const answer = await fetch(url, { headers });
  const challenge = answer.headers.get('www-authenticate');
  if (answer.status !== 401 || challenge === null) return answer;
  const fields = Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
  const query = new URLSearchParams({ service: fields['service'] ?? '', scope: fields['scope'] ?? '' });
  const granted = (await (await fetch(`${fields['realm']}?${query}`)).json()) as {
    token?: string;
    access_token?: string;
  };
  return fetch(url, { headers: { ...headers, Authorization: `Bearer ${granted.token ?? granted.access_token}` } });
}

/** The digest of what a tag means now; of all platforms, where the image has several. */
async function resolveTag(name: string, tag: string): Promise<string> {
  const { registry, repository } = placeOf(name);
  const answer = await ask(`${registry}/v2/${repository}/manifests/${tag}`);
  if (!answer.ok) throw new Error(`${name}:${tag}: the registry answers ${answer.status}`);
  const digest = `sha256:${createHash('sha256')
    .update(await answer.bytes())
    .digest('hex')}`;
  const told = answer.headers.get('docker-content-digest');
  if (told !== null && told !== digest)
    throw new Error(`${name}:${tag}: the registry says ${told} and sends ${digest}`);
  return digest;
}

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const found = files.flatMap((file) =>
  [...read(file).matchAll(reference)].map(([, , name, tag, digest]) => ({ file, name, tag, digest })),
);

if (values.check) {
  const loose = found.filter(({ digest }) => digest === undefined);
  for (const { file, name, tag } of loose) console.error(`${file}: ${name}:${tag} has no digest`);
  if (loose.length > 0) process.exitCode = 1;
} else {
  const images = new Map(found.map(({ name, tag }) => [`${name}:${tag}`, [name as string, tag as string] as const]));
  // All of them, before any file is changed.
  const digests = new Map<string, string>();
  for (const [image, [name, tag]] of images) digests.set(image, await resolveTag(name, tag));
  for (const file of files) {
    const pinned = read(file).replace(
      reference,
      (_, lead: string, name: string, tag: string) => `${lead}${name}:${tag}@${digests.get(`${name}:${tag}`)}`,
    );
    writeFileSync(path.join(root, file), pinned);
  }
  for (const [image, digest] of digests) console.log(`${image}@${digest}`);
}
