import { existsSync } from 'node:fs';
import path from 'node:path';

/** The root of a checkout or of a package, whose bundle is at another depth. */
export const installationRoot = rootAbove(import.meta.dirname);

function rootAbove(folder: string): string {
  return existsSync(path.join(folder, 'package.json')) ? folder : rootAbove(path.dirname(folder));
}
