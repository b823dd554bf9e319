import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Circle, CircleCheck, X } from 'lucide-react';
import type { ReactNode } from 'react';
import type { SetupStep } from '../platform/app/contract.ts';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { dismissSteps, useIsDismissed } from './dismissals.ts';
import styles from './next-steps.module.css';

const staleMs = 60_000;

/** The steps that a team needs after its first update, for admins. Null: there are none to show. Undefined: it is not known yet. */
export function useNextSteps(organization: string | undefined) {
  const isDismissed = useIsDismissed(organization ?? '');
  const mayManage = useMayManage(organization ?? '');
  const isWanted = organization !== undefined && mayManage && !isDismissed;
  const { data, failureCount } = useQuery(
    trpc.setup.list.queryOptions({ organization: organization ?? '' }, { enabled: isWanted, staleTime: staleMs }),
  );
  if (!isWanted) return null;
  if (data === undefined) return failureCount > 0 ? null : undefined;
  return data.items.some(({ isDone }) => !isDone) ? data.items : null;
}

/** What a team needs after its first update, until all is done or the list is dismissed. */
export function NextSteps({
  items,
  organization,
}: {
  readonly organization: string;
  readonly items: NonNullable<ReturnType<typeof useNextSteps>>;
}) {
  const done = items.filter(({ isDone }) => isDone).length;
  return (
    <section className={styles['steps']} aria-label="Next steps">
      <header className={styles['head']}>
        <h2>Next steps</h2>
        <span className={styles['count']}>
          {done} of {items.length} done
        </span>
        <Button
          kind="quiet"
          size="icon"
          aria-label="Dismiss the next steps"
          title="Dismiss"
          onClick={() => dismissSteps(organization)}
        >
          <X size={16} />
        </Button>
      </header>
      <ul className={styles['list']}>
        {items.map(({ isDone, step }) => (
          <li key={step} className={styles['step']}>
            {isDone ? (
              <CircleCheck size={16} className={styles['done']} role="img" aria-label="Done:" />
            ) : (
              <Circle size={16} className={styles['open']} role="img" aria-label="To do:" />
            )}
            <span>{textOf(step, organization)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function textOf(step: SetupStep, organization: string): ReactNode {
  const params = { organization };
  switch (step) {
    case 'people':
      return (
        <>
          <Link to="/$organization/~/members" params={params}>
            Invite your team
          </Link>
          , or let an identity provider add its members.
        </>
      );
    case 'trust':
      return (
        <>
          <Link to="/$organization/~/trust-policies" params={params}>
            Trust your CI
          </Link>
          : its runs then need no stored token.
        </>
      );
    case 'rules':
      return (
        <>
          <Link to="/$organization/~/rules" params={params}>
            Set rules for updates
          </Link>
          : limits on deletions, required previews, freezes.
        </>
      );
    case 'provider':
      return (
        <>
          Let people sign in with an identity provider: <code>HOLDFAST_OIDC_ISSUER</code>.
        </>
      );
    case 'backups':
      return (
        <>
          <Link to="/~/operator/backups">Schedule backups</Link>: <code>HOLDFAST_BACKUP_TO</code>.
        </>
      );
    default:
      // A newer server may have others.
      return step;
  }
}
