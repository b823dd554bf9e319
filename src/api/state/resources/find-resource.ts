import { type ResourceView, viewResource } from '../../../shared/search/resource-facts.ts';
import type { StateScan } from '../../platform/admission/state-scans.ts';

/** Skips resources that are pending deletion. Throws the errors of `scan`. */
export async function findResource(
  scan: StateScan,
  state: Parameters<StateScan['scanResources']>[0],
  urn: string,
): Promise<ResourceView | null> {
  // Encoders write a URN of these characters unescaped, so most resources are ruled out without parsing.
  const mark = /^[\w :$/.@-]+$/.test(urn) ? Buffer.from(`"${urn}"`) : null;
  let found: Buffer | null = null;
  await scan.scanResources(state, async (text) => {
    if (mark !== null && !text.includes(mark)) return;
    const view = await viewResource(text);
    if (view.urn === urn && !view.isDeleted) found = Buffer.from(text);
  });
  return found && viewResource(found);
}
