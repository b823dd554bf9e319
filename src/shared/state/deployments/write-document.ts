import { createHash } from 'node:crypto';
import { nameText } from '../../platform/json/member-edits.ts';
import type { DocumentParts } from './deployment-parts.ts';

export interface ManifestSource {
  /** RFC 3339. */
  readonly time: string;
  /** "" if unknown. */
  readonly version: string;
}

const firstMembers = ['secrets_providers', 'resources', 'pending_operations', 'metadata', 'snippets', 'extensions'];
const bracket = Buffer.from('[');
const comma = Buffer.from(',');

/** Known members in the CLI's order, then unknown ones. */
export function writeDocument({ deployment, features, members }: DocumentParts, manifest: ManifestSource): Buffer {
  const head = { version: features.length > 0 ? 4 : 3, ...(features.length > 0 && { features }) };
  const chunks: Buffer[] = [
    Buffer.from(
      `${JSON.stringify(head).slice(0, -1)},"deployment":{"manifest":${JSON.stringify(createManifest(manifest))}`,
    ),
  ];
  const lists = new Map<string, readonly { readonly text: Buffer }[]>([
    ['resources', deployment.resources],
    ['pending_operations', deployment.pendingOperations],
  ]);
  for (const name of new Set([...firstMembers, ...deployment.members.keys()])) {
    const list = lists.get(name);
    const value = deployment.members.get(name);
    if (list && list.length > 0) {
      chunks.push(comma, nameText(name));
      list.forEach(({ text }, i) => {
        chunks.push(i === 0 ? bracket : comma, text);
      });
      chunks.push(Buffer.from(']'));
    } else if (value) {
      chunks.push(comma, nameText(name), value);
    } else if (name === 'metadata') {
      chunks.push(comma, Buffer.from('"metadata":{}'));
    }
  }
  chunks.push(Buffer.from('}'));
  for (const [name, value] of members) chunks.push(comma, nameText(name), value);
  chunks.push(Buffer.from('}'));
  return Buffer.concat(chunks);
}

/** The CLI rejects a state whose magic is not the digest of its version. */
function createManifest({ time, version }: ManifestSource): { time: string; magic: string; version: string } {
  const magic = version === '' ? '' : createHash('sha256').update(version).digest('hex');
  return { time, magic, version };
}
