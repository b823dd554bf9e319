import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Circle, CircleCheck, X } from 'lucide-react';
import type { ReactNode } from 'react';
import { useMayManage } from '../platform/app/organization-pages.ts';
import type { SetupStep } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { dismissSteps, useIsDismissed } from './dismissals.ts';
import styles from './next-steps.module.css';
import { nextStepTexts } from './texts.tsx';

const staleMs = 60_000;

/** The steps for a team after its first update, for admins. Null: there are no steps to show, or they are unknown yet. */
export function useNextSteps(organization: string | undefined) {
  const isDismissed = useIsDismissed(organization ?? '');
  const mayManage = useMayManage(organization ?? '');
  const isWanted = organization !== undefined && mayManage && !isDismissed;
  const { data } = useQuery(
    trpc.setup.list.queryOptions({ organization: organization ?? '' }, { enabled: isWanted, staleTime: staleMs }),
  );
  if (!isWanted || data === undefined) return null;
  return data.items.some(({ isDone }) => !isDone) ? data.items : null;
}

/** The steps for a team after its first update, until all are done or the list is dismissed. */
export function NextSteps({
  items,
  organization,
}: {
  readonly organization: string;
  readonly items: NonNullable<ReturnType<typeof useNextSteps>>;
}) {
  const done = items.filter(({ isDone }) => isDone).length;
  return (
    <section className={styles['steps']} aria-label={nextStepTexts.title}>
      <header className={styles['head']}>
        <h2>{nextStepTexts.title}</h2>
        <span className={styles['count']}>{nextStepTexts.doneOf(done, items.length)}</span>
        <Button
          kind="quiet"
          size="icon"
          aria-label={nextStepTexts.dismissSteps}
          title={nextStepTexts.dismiss}
          onClick={() => dismissSteps(organization)}
        >
          <X size={16} />
        </Button>
      </header>
      <ul className={styles['list']}>
        {items.map(({ isDone, step }) => (
          <li key={step} className={styles['step']}>
            {isDone ? (
              <CircleCheck size={16} className={styles['done']} role="img" aria-label={nextStepTexts.done} />
            ) : (
              <Circle size={16} className={styles['open']} role="img" aria-label={nextStepTexts.toDo} />
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
      return nextStepTexts.people((label) => (
        <Link to="/$organization/~/members" params={params}>
          {label}
        </Link>
      ));
    case 'trust':
      return nextStepTexts.trust((label) => (
        <Link to="/$organization/~/trust-policies" params={params}>
          {label}
        </Link>
      ));
    case 'rules':
      return nextStepTexts.rules((label) => (
        <Link to="/$organization/~/rules" params={params}>
          {label}
        </Link>
      ));
    case 'provider':
      return nextStepTexts.provider(<code>HOLDFAST_OIDC_ISSUER</code>);
    case 'backups':
      return nextStepTexts.backups(
        (label) => <Link to="/~/operator/backups">{label}</Link>,
        <code>HOLDFAST_BACKUP_TO</code>,
      );
    default:
      // A newer server may have other steps.
      return step;
  }
}
