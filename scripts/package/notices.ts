import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './folders.ts';

/** The licenses of the packages in a bundle, by the names of its input files. */
export function noticesOf(inputs: readonly string[]): string {
  const folders = new Set<string>();
  for (const input of inputs) {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  return [...folders].sort().map(noticeOf).join('\n');
}

function noticeOf(folder: string): string {
  const place = path.join(root, folder);
  const read = (name: string): string => readFileSync(path.join(place, name), 'utf8').trim();
  const { license, name, version } = JSON.parse(read('package.json')) as Record<string, string>;
  const texts = existsSync(place) ? readdirSync(place).filter((file) => /^(licen[cs]e|notice)/i.test(file)) : [];
  return `## ${name} ${version} (${license})\n\n${texts.map((file) => `${read(file)}\n`).join('\n')}`;
}
