import type { ReactNode } from 'react';

export const approvalNoticeTexts = {
  approveTheRun: 'Approve the requested run',
  requestedBy: (commit: ReactNode, askedBy: string, time: ReactNode) => (
    <>
      Approval requested for {commit} by {askedBy}, {time}
    </>
  ),
  more: 'More requests for approval',
  withdraw: 'Withdraw',
  approve: 'Approve',
  whoMayApprove: 'Any admin of the stack except the requester can approve it.',
} as const;

export const approvalTableTexts = {
  commit: 'Commit',
  requested: 'Requested',
  links: 'Links',
  state: 'State',
  actions: 'Actions',
  actionFor: (action: string, commit: string, project: string, stack: string) =>
    `${action} ${commit} for ${project}/${stack}`,
  approveFor: (commit: string, project: string, stack: string) => `Approve ${commit} for ${project}/${stack}`,
  approve: 'Approve',
  approvedBy: (approver: string | null, time: ReactNode, reason: string | null) => (
    <>
      Approved by {approver}, {time}
      {reason === null ? '' : `: ${reason}`}
    </>
  ),
  approvals: 'Approvals',
  aheadOfARun: 'Requested ahead of a run',
  update: 'Update',
  ciRun: 'CI run',
  valid: 'Valid',
  expired: 'Expired',
  ends: (isValid: boolean, time: ReactNode) => (
    <>
      {isValid ? 'ends ' : ''}
      {time}
    </>
  ),
} as const;

export const approvalsTexts = {
  title: 'Approvals',
  lead: 'A run that would delete or replace more than the rules allow is stopped and requests an approval. Once another user approves its commit, the next run passes.',
  requested: 'Requested',
  approved: 'Approved',
  noApprovalsYet: 'No approvals yet',
  noApprovalsHint: 'Approvals stay here, with the approver and the reason.',
  noPendingRequests: 'No pending requests',
  noRequestsHint: 'The organization’s rules (change limits and protected types) decide which runs need an approval.',
} as const;

export const approveDialogTexts = {
  fifteenMinutes: '15 minutes',
  anHour: 'an hour',
  fourHours: '4 hours',
  aDay: 'a day',
  aWeek: 'a week',
  title: (commit: string) => `Approve ${commit}?`,
  description: (kind: string, project: string, stack: string, request: string) =>
    `For a time, each ${kind} of ${project}/${stack} that runs this commit may exceed the change limits and protected types of the rules.${request === '' ? '' : ` Request: ${request}`}`,
  approve: 'Approve',
  reason: 'Reason',
  reasonHint: 'Kept in the audit log.',
  validFor: 'Valid for',
} as const;

export const askApprovalTexts = {
  requestApproval: 'Request approval',
  title: 'Request approval?',
  description: (project: string, stack: string) =>
    `Once another user approves the commit, its runs on ${project}/${stack} may exceed the change limits and protected types of the rules for a limited time. A stopped run requests an approval automatically.`,
  commit: 'Commit',
  commitHint: 'The full hash, as printed by git rev-parse HEAD.',
  for: 'For',
  reason: 'Reason',
  reasonHint: 'Shown to the approver.',
} as const;

export const withdrawDialogTexts = {
  withdraw: 'Withdraw',
  revoke: 'Revoke',
  withdrawTheRequest: 'Withdraw the request?',
  revokeTheApproval: 'Revoke the approval?',
  withdrawal: (commit: string, project: string, stack: string) =>
    `Nobody can approve ${commit} for ${project}/${stack} then. A stopped run sends a new request.`,
  revocation: (kind: string, project: string, stack: string, commit: string) =>
    `From now on, each ${kind} of ${project}/${stack} that runs ${commit} must follow the rules again. Running updates go on.`,
  keepIt: 'Keep it',
} as const;
