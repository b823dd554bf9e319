export default function CommandPalette(_props: { organization: string | undefined; onClose: () => void }) {
  return null;
}
