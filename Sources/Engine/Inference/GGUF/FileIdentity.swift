internal import Foundation

/// Which file a path refers to, also through links.
package struct FileIdentity: Equatable {
    private let device: UInt64
    private let inode: UInt64

    /// Nil if there is no such file.
    package init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
    }
}
