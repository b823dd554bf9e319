import { shellTexts } from './platform/texts.tsx';
import { Dialog } from './platform/ui/dialog.tsx';
import { Sidebar } from './sidebar.tsx';

export default function SidebarDrawer({
  onClose,
  organization,
}: {
  readonly organization: string | undefined;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={shellTexts.navigation} position="side" isOpen onClose={onClose}>
      <Sidebar organization={organization} onLeave={onClose} />
    </Dialog>
  );
}
