import type { ImportRun } from '../../platform/app/contract.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { counted } from '../../platform/ui/counted.ts';
import styles from './imports.module.css';

/** How a run ended, and whether what came was compared with its source since. */
export function RunBadges({ run }: { readonly run: ImportRun }) {
  const { endedAt, kind, noted, quarantined, verified } = run;
  const what = kind === 'verify' ? 'with differences' : kind === 'rollback' ? 'kept' : 'with gaps';
  return (
    <span className={styles['badges']}>
      {endedAt === null ? <Badge tone="warning">not ended</Badge> : null}
      {noted > 0 ? (
        <Badge tone={kind === 'verify' ? 'failure' : 'warning'}>
          {counted(noted, 'stack')} {what}
        </Badge>
      ) : null}
      {quarantined > 0 ? <Badge tone="warning">{quarantined.toLocaleString()} in quarantine</Badge> : null}
      {kind === 'verify' && endedAt !== null && noted === 0 ? <Badge tone="success">no differences</Badge> : null}
      {kind === 'import' ? <VerifiedBadge verified={verified} /> : null}
    </span>
  );
}

function VerifiedBadge({ verified }: Pick<ImportRun, 'verified'>) {
  if (verified === null) return <Badge>not verified</Badge>;
  const { differentStacks, stacks } = verified;
  return differentStacks > 0 ? (
    <Badge tone="failure">
      {differentStacks.toLocaleString()} of {counted(stacks, 'stack')} differ
    </Badge>
  ) : (
    <Badge tone="success">verified: {counted(stacks, 'stack')}</Badge>
  );
}
