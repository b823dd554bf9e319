import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

// `npm run pin-images`: resolves the tags of our container images at their registry and writes the digests after the
// tags. `--check` only reports images without a digest; `--root` and `--registry` are for tests and mirrors.

const { values } = parseArgs({
  options: { check: { type: 'boolean' }, root: { type: 'string' }, registry: { type: 'string' } },
});
const root = path.resolve(values.root ?? path.join(import.meta.dirname, '..'));

const files = ['Dockerfile', 'deploy/s3/Dockerfile', 'docker-compose.yml'];
/**
 * `# syntax=…`, `FROM …` and `image: …` with a name, a tag and optionally a digest. Our own images have a variable as
 * tag.
 */
const reference =
  /^(# syntax=|FROM (?:--\S+ )?| +image: )((?:[a-z0-9.-]+(?::\d+)?\/)*[a-z0-9._-]+):([\w.-]+)(@sha256:[0-9a-f]{64})?(?=\s|$)/gm;
const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** Returns the registry and the repository of an image name, as Docker interprets it. */
function locate(name: string): { registry: string; repository: string } {
  const [first = '', ...rest] = name.split('/');
  if (rest.length > 0 && /[.:]/.test(first))
    return { registry: values.registry ?? `https://${first}`, repository: rest.join('/') };
  const repository = rest.length === 0 ? `library/${name}` : name;
  return { registry: values.registry ?? 'https://registry-1.docker.io', repository };
}

/** Sends an anonymous request, with an anonymous token if the registry requires one. */
async function get(url: string): Promise<Response> {
  const headers = { Accept: manifestTypes };
  const response = await fetch(url, { headers });
  const challenge = response.headers.get('www-authenticate');
  if (response.status !== 401 || challenge === null) return response;
  const fields = Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
  const query = new URLSearchParams({ service: fields['service'] ?? '', scope: fields['scope'] ?? '' });
  const granted = (await (await fetch(`${fields['realm']}?${query}`)).json()) as {
    token?: string;
    access_token?: string;
  };
  return fetch(url, { headers: { ...headers, Authorization: `Bearer ${granted.token ?? granted.access_token}` } });
}

/** Returns the current digest of a tag, which covers all platforms of the image. */
async function resolveTag(name: string, tag: string): Promise<string> {
  const { registry, repository } = locate(name);
  const response = await get(`${registry}/v2/${repository}/manifests/${tag}`);
  if (!response.ok) throw new Error(`${name}:${tag}: the registry responded with ${response.status}`);
  const digest = `sha256:${createHash('sha256')
    .update(await response.bytes())
    .digest('hex')}`;
  const announced = response.headers.get('docker-content-digest');
  if (announced !== null && announced !== digest)
    throw new Error(`${name}:${tag}: the registry says ${announced} but sent ${digest}`);
  return digest;
}

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const found = files.flatMap((file) =>
  [...read(file).matchAll(reference)].map(([, , name, tag, digest]) => ({ file, name, tag, digest })),
);

if (values.check) {
  const unpinned = found.filter(({ digest }) => digest === undefined);
  for (const { file, name, tag } of unpinned) console.error(`${file}: ${name}:${tag} has no digest`);
  if (unpinned.length > 0) process.exitCode = 1;
} else {
  const images = new Map(found.map(({ name, tag }) => [`${name}:${tag}`, [name as string, tag as string] as const]));
  // Resolve all tags before changing any file.
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
