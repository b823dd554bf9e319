import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

// `npm run sbom [-- FILE [npm's options]]`: writes the locked runtime packages as a CycloneDX SBOM. The same lock file
// yields the same bytes: the tool, timestamp and random serial number that npm adds are removed.

interface Bom {
  serialNumber?: string;
  metadata: { timestamp?: string; tools?: unknown; component: { name: string } };
}

const root = path.join(import.meta.dirname, '..');
const [file = 'sbom.cdx.json', ...options] = process.argv.slice(2);
const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--omit=dev', ...options];
const output = execFileSync('npm', args, {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const bom = JSON.parse(output) as Bom;
delete bom.serialNumber;
delete bom.metadata.timestamp;
delete bom.metadata.tools;
// npm uses the name of the directory.
bom.metadata.component.name = (
  JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { name: string }
).name;
writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`);
