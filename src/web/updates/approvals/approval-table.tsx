import { Link } from '@tanstack/react-router';
import { Check, Clock } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { Approval } from '../../platform/app/procedure-types.ts';
import { stackColumn } from '../../platform/app/stack-link.tsx';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { ExternalLink } from '../../platform/ui/external-link.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { shortCommit } from '../update-status.ts';
import styles from './approvals.module.css';
import { ApproveDialog } from './approve-dialog.tsx';
import { approvalTableTexts } from './texts.tsx';
import { isWithdrawable, WithdrawDialog, withdrawWord } from './withdraw-dialog.tsx';

export function ApprovalTable({
  empty,
  organization,
  ...list
}: {
  readonly organization: string;
  readonly items: readonly Approval[] | undefined;
  readonly hasMore: boolean;
  readonly isBusy: boolean;
  readonly onMore: () => void;
  readonly empty: ReactNode;
}) {
  const [chosen, setChosen] = useState<Approval | null>(null);
  const [withdrawn, setWithdrawn] = useState<Approval | null>(null);
  const columns: Column<Approval>[] = [
    stackColumn(organization),
    {
      name: approvalTableTexts.commit,
      cell: ({ commit, kind }) => (
        <span className={styles['inline']}>
          <code title={commit}>{shortCommit(commit)}</code>
          <span className={styles['kind']}>{kind}</span>
        </span>
      ),
    },
    {
      name: approvalTableTexts.requested,
      cell: ({ askedAt, askedBy }) => (
        <span>
          {askedBy}, <Time at={askedAt} />
        </span>
      ),
    },
    {
      name: approvalTableTexts.links,
      cell: (approval) => <ApprovalLinks organization={organization} approval={approval} />,
    },
    ...(list.items?.some(({ approvedAt }) => approvedAt !== null)
      ? [
          {
            name: approvalTableTexts.state,
            cell: (approval: Approval) => (approval.approvedAt === null ? null : <Validity approval={approval} />),
          },
        ]
      : []),
    {
      name: approvalTableTexts.actions,
      isActions: true,
      cell: (approval) => (
        <span className={styles['inline']}>
          {isWithdrawable(approval) ? (
            <Button
              size="small"
              kind="quiet"
              aria-label={approvalTableTexts.actionFor(
                withdrawWord(approval),
                shortCommit(approval.commit),
                approval.project,
                approval.stack,
              )}
              onClick={() => setWithdrawn(approval)}
            >
              {withdrawWord(approval)}
            </Button>
          ) : null}
          {approval.mayGive && approval.approvedAt === null ? (
            <Button
              size="small"
              aria-label={approvalTableTexts.approveFor(shortCommit(approval.commit), approval.project, approval.stack)}
              onClick={() => setChosen(approval)}
            >
              {approvalTableTexts.approve}
            </Button>
          ) : null}
        </span>
      ),
    },
  ];
  return (
    <>
      <Table
        {...list}
        label={approvalTableTexts.approvals}
        columns={columns}
        keyOf={({ id }) => id}
        empty={empty}
        details={(approval) => <Why approval={approval} />}
      />
      {chosen === null ? null : (
        <ApproveDialog organization={organization} approval={chosen} onClose={() => setChosen(null)} />
      )}
      {withdrawn === null ? null : (
        <WithdrawDialog organization={organization} approval={withdrawn} onClose={() => setWithdrawn(null)} />
      )}
    </>
  );
}

export function ApprovalLinks({
  approval: { ciUrl, project, stack, updateId },
  organization,
}: {
  readonly organization: string;
  readonly approval: Approval;
}) {
  return (
    <span className={styles['inline']}>
      {updateId === null ? (
        <span className={styles['kind']}>{approvalTableTexts.aheadOfARun}</span>
      ) : (
        <Link
          to="/$organization/$project/$stack/previews/$updateId"
          params={{ organization, project, stack, updateId }}
        >
          {approvalTableTexts.update}
        </Link>
      )}
      {ciUrl === null ? null : <ExternalLink href={ciUrl}>{approvalTableTexts.ciRun}</ExternalLink>}
    </span>
  );
}

function Why({ approval }: { readonly approval: Approval }) {
  const { approvedBy, approvedAt, message, reason, refusal, request } = approval;
  return (
    <div className={styles['why']}>
      {request === '' ? null : <p className={styles['request']}>{request}</p>}
      {message === null || message === '' ? null : <p>{message}</p>}
      {approvedAt === null ? null : (
        <p>{approvalTableTexts.approvedBy(approvedBy, <Time at={approvedAt} />, reason)}</p>
      )}
      {approvedAt !== null || refusal === null ? null : <p>{refusal}.</p>}
    </div>
  );
}

function Validity({ approval: { expiresAt, isValid } }: { readonly approval: Approval }) {
  return (
    <span className={styles['inline']}>
      <Badge
        tone={isValid ? 'success' : 'neutral'}
        icon={isValid ? <Check aria-hidden="true" /> : <Clock aria-hidden="true" />}
      >
        {isValid ? approvalTableTexts.valid : approvalTableTexts.expired}
      </Badge>
      {expiresAt === null ? null : (
        <span className={styles['kind']}>{approvalTableTexts.ends(isValid, <Time at={expiresAt} />)}</span>
      )}
    </span>
  );
}
